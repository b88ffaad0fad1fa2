// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.30;

/// The part of an ERC-1155 that shows: kinds of items, each with a number, minted by whoever wants them.
contract Items {
    mapping(address => mapping(uint256 => uint256)) private held;

    event TransferSingle(address indexed operator, address indexed from, address indexed to, uint256 id, uint256 value);
    event TransferBatch(
        address indexed operator, address indexed from, address indexed to, uint256[] ids, uint256[] values
    );

    function supportsInterface(bytes4 interfaceId) external pure returns (bool) {
        return interfaceId == 0x01ffc9a7 || interfaceId == 0xd9b67a26;
    }

    function balanceOf(address account, uint256 id) external view returns (uint256) {
        return held[account][id];
    }

    function mintBatch(address to, uint256[] calldata ids, uint256[] calldata values) external {
        for (uint256 at = 0; at < ids.length; ++at) {
            held[to][ids[at]] += values[at];
        }
        emit TransferBatch(msg.sender, address(0), to, ids, values);
    }

    function safeTransferFrom(address from, address to, uint256 id, uint256 value, bytes calldata) external {
        require(from == msg.sender, "Items: not the owner");
        held[from][id] -= value;
        held[to][id] += value;
        emit TransferSingle(msg.sender, from, to, id, value);
    }
}
