// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

/// Each of the ways to fail that Solidity has, and a payment.
contract Faults {
    error Refused(address who, uint256 why);

    event Taken(address indexed from, uint256 value, string note);

    function text() external pure {
        revert("Faults: as asked");
    }

    function custom(uint256 why) external view {
        revert Refused(msg.sender, why);
    }

    function silent() external pure {
        revert();
    }

    function quotient(uint256 dividend, uint256 divisor) external pure returns (uint256) {
        return dividend / divisor;
    }

    function take(string calldata note) external payable {
        emit Taken(msg.sender, msg.value, note);
    }

    function giveBack() external {
        payable(msg.sender).transfer(address(this).balance);
    }
}
