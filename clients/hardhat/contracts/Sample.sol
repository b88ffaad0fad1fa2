// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

// The contract of hardhat's sample project, out of the package.
import "hardhat/sample-projects/javascript/contracts/Lock.sol";
