// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.30;

import {Collectible} from "./Collectible.sol";

/// Makes collections for a price, which it passes on: a transaction that creates and pays inside.
contract Workshop {
    event Made(Collectible indexed collection, address indexed customer);

    function make(string calldata name, string calldata symbol, address payable to)
        external
        payable
        returns (Collectible collection)
    {
        collection = new Collectible(name, symbol);
        (bool isPaid,) = to.call{value: msg.value}("");
        require(isPaid, "Workshop: the price was not taken");
        collection.mint(msg.sender);
        emit Made(collection, msg.sender);
    }
}
