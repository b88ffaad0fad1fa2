// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.30;

/// An ERC-721 whose tokens are minted by whoever wants them, one number after the other.
contract Collectible {
    string public name;
    string public symbol;
    uint256 public totalSupply;
    mapping(uint256 => address) public ownerOf;
    mapping(address => uint256) public balanceOf;
    mapping(uint256 => address) public getApproved;
    mapping(address => mapping(address => bool)) public isApprovedForAll;

    event Transfer(address indexed from, address indexed to, uint256 indexed tokenId);
    event Approval(address indexed owner, address indexed approved, uint256 indexed tokenId);
    event ApprovalForAll(address indexed owner, address indexed operator, bool approved);

    error NotAllowed(address account, uint256 tokenId);

    constructor(string memory name_, string memory symbol_) {
        name = name_;
        symbol = symbol_;
    }

    function supportsInterface(bytes4 interfaceId) external pure returns (bool) {
        return interfaceId == 0x01ffc9a7 || interfaceId == 0x80ac58cd;
    }

    function mint(address to) external returns (uint256 tokenId) {
        tokenId = ++totalSupply;
        give(address(0), to, tokenId);
    }

    function approve(address approved, uint256 tokenId) external {
        address owner = ownerOf[tokenId];
        if (msg.sender != owner && !isApprovedForAll[owner][msg.sender]) revert NotAllowed(msg.sender, tokenId);
        getApproved[tokenId] = approved;
        emit Approval(owner, approved, tokenId);
    }

    function setApprovalForAll(address operator, bool approved) external {
        isApprovedForAll[msg.sender][operator] = approved;
        emit ApprovalForAll(msg.sender, operator, approved);
    }

    function transferFrom(address from, address to, uint256 tokenId) external {
        bool isAllowed =
            msg.sender == from || isApprovedForAll[from][msg.sender] || getApproved[tokenId] == msg.sender;
        if (ownerOf[tokenId] != from || !isAllowed) revert NotAllowed(msg.sender, tokenId);
        delete getApproved[tokenId];
        balanceOf[from] -= 1;
        give(from, to, tokenId);
    }

    function give(address from, address to, uint256 tokenId) private {
        require(to != address(0), "Collectible: transfer to the zero address");
        ownerOf[tokenId] = to;
        balanceOf[to] += 1;
        emit Transfer(from, to, tokenId);
    }
}
