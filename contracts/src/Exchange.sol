// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.30;

interface IToken {
    function transfer(address to, uint256 value) external returns (bool);
    function transferFrom(address from, address to, uint256 value) external returns (bool);
}

/// A pool of two tokens that keeps the product of its reserves from falling. Every division is rounded in favour
/// of the pool. Tokens must move exactly the amount they are asked to; what is sent to the pool without a call of
/// it belongs to nobody. The whole state is plain storage, so that a genesis can set it.
contract Exchange {
    IToken public token0; // slot 0
    IToken public token1; // slot 1
    uint256 private reserve0; // slot 2
    uint256 private reserve1; // slot 3
    uint256 public totalShares; // slot 4
    mapping(address => uint256) public sharesOf; // slot 5

    /// Shares of the first deposit that nobody gets, so that one share never becomes expensive.
    uint256 public constant LOCKED_SHARES = 1000;

    bool private transient entered;

    event Liquidity(address indexed provider, int256 amount0, int256 amount1, int256 shares);
    event Swap(address indexed trader, address indexed tokenIn, uint256 amountIn, uint256 amountOut);

    error UnknownToken(address token);
    error InsufficientOutput(uint256 amountOut, uint256 minOut);
    error InsufficientShares(address provider, uint256 shares, uint256 needed);

    modifier guarded() {
        require(!entered, "Exchange: entered again");
        entered = true;
        _;
        entered = false;
    }

    constructor(IToken token0_, IToken token1_) {
        require(token0_ != token1_, "Exchange: twice the same token");
        token0 = token0_;
        token1 = token1_;
    }

    function reserves() external view returns (uint256, uint256) {
        return (reserve0, reserve1);
    }

    /// Deposits at the pool's price at most `max0` and `max1`, at any price if the pool is empty.
    function addLiquidity(uint256 max0, uint256 max1)
        external
        guarded
        returns (uint256 amount0, uint256 amount1, uint256 shares)
    {
        if (totalShares == 0) {
            (amount0, amount1) = (max0, max1);
            shares = openingShares(max0, max1);
        } else {
            shares = least(max0 * totalShares / reserve0, max1 * totalShares / reserve1);
            amount0 = divideUp(shares * reserve0, totalShares);
            amount1 = divideUp(shares * reserve1, totalShares);
        }
        require(shares > 0, "Exchange: too little for a share");
        totalShares += shares;
        sharesOf[msg.sender] += shares;
        reserve0 += amount0;
        reserve1 += amount1;
        emit Liquidity(msg.sender, int256(amount0), int256(amount1), int256(shares));
        pull(token0, amount0);
        pull(token1, amount1);
    }

    /// Gives up `shares` for their part of both reserves.
    function removeLiquidity(uint256 shares) external guarded returns (uint256 amount0, uint256 amount1) {
        uint256 owned = sharesOf[msg.sender];
        if (owned < shares) revert InsufficientShares(msg.sender, owned, shares);
        require(shares > 0, "Exchange: no shares");
        amount0 = shares * reserve0 / totalShares;
        amount1 = shares * reserve1 / totalShares;
        sharesOf[msg.sender] = owned - shares;
        totalShares -= shares;
        reserve0 -= amount0;
        reserve1 -= amount1;
        emit Liquidity(msg.sender, -int256(amount0), -int256(amount1), -int256(shares));
        push(token0, amount0);
        push(token1, amount1);
    }

    /// Takes `amountIn` of `tokenIn` and gives what the product of the reserves allows of the other token, after a
    /// fee of 0.3 % that stays in the pool.
    function swap(IToken tokenIn, uint256 amountIn, uint256 minOut) external guarded returns (uint256 amountOut) {
        require(amountIn > 0, "Exchange: nothing to swap");
        bool first = isFirst(tokenIn);
        amountOut = first ? quote(amountIn, reserve0, reserve1) : quote(amountIn, reserve1, reserve0);
        if (amountOut < minOut) revert InsufficientOutput(amountOut, minOut);
        if (first) {
            reserve0 += amountIn;
            reserve1 -= amountOut;
        } else {
            reserve1 += amountIn;
            reserve0 -= amountOut;
        }
        emit Swap(msg.sender, address(tokenIn), amountIn, amountOut);
        pull(tokenIn, amountIn);
        push(first ? token1 : token0, amountOut);
    }

    function isFirst(IToken token) private view returns (bool) {
        if (token == token0) return true;
        if (token == token1) return false;
        revert UnknownToken(address(token));
    }

    /// The locked shares of an empty pool are entered for nobody; the rest is the depositor's.
    function openingShares(uint256 amount0, uint256 amount1) private returns (uint256) {
        uint256 all = squareRoot(amount0 * amount1);
        require(all > LOCKED_SHARES, "Exchange: too little to open the pool");
        totalShares = LOCKED_SHARES;
        return all - LOCKED_SHARES;
    }

    function pull(IToken token, uint256 amount) private {
        require(token.transferFrom(msg.sender, address(this), amount), "Exchange: the token refused");
    }

    function push(IToken token, uint256 amount) private {
        require(token.transfer(msg.sender, amount), "Exchange: the token refused");
    }

    function quote(uint256 amountIn, uint256 reserveIn, uint256 reserveOut) private pure returns (uint256) {
        require(reserveIn > 0 && reserveOut > 0, "Exchange: the pool is empty");
        uint256 charged = amountIn * 997;
        return charged * reserveOut / (reserveIn * 1000 + charged);
    }

    function least(uint256 a, uint256 b) private pure returns (uint256) {
        return a < b ? a : b;
    }

    function divideUp(uint256 a, uint256 b) private pure returns (uint256) {
        return (a + b - 1) / b;
    }

    /// The largest number whose square is at most `n`, by Newton's method from above.
    function squareRoot(uint256 n) private pure returns (uint256 root) {
        root = n;
        uint256 next = n / 2 + n % 2;
        while (next < root) {
            root = next;
            next = (n / root + root) / 2;
        }
    }
}
