// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";
import {ERC20Votes} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Votes.sol";
import {ERC721} from "@openzeppelin/contracts/token/ERC721/ERC721.sol";
import {ERC721Holder} from "@openzeppelin/contracts/token/ERC721/utils/ERC721Holder.sol";
import {Nonces} from "@openzeppelin/contracts/utils/Nonces.sol";

/// An ERC-20 that its owner mints, with permits and votes.
contract Coin is ERC20, ERC20Permit, ERC20Votes, Ownable {
    constructor() ERC20("Coin", "COIN") ERC20Permit("Coin") Ownable(msg.sender) {}

    function mint(address to, uint256 value) external onlyOwner {
        _mint(to, value);
    }

    function _update(address from, address to, uint256 value) internal override(ERC20, ERC20Votes) {
        super._update(from, to, value);
    }

    function nonces(address owner) public view override(ERC20Permit, Nonces) returns (uint256) {
        return super.nonces(owner);
    }
}

/// An ERC-721 that its owner mints.
contract Deed is ERC721, Ownable {
    constructor() ERC721("Deed", "DEED") Ownable(msg.sender) {}

    function mint(address to, uint256 id) external onlyOwner {
        _safeMint(to, id);
    }

    function _baseURI() internal pure override returns (string memory) {
        return "ipfs://deeds/";
    }
}

/// A contract that takes deeds.
contract Chest is ERC721Holder {}
