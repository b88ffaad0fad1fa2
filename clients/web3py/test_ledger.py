"""What web3.py finds when it works with a ledger."""

import asyncio

import pytest
from eth_account import Account
from web3 import AsyncWeb3, Web3, WebSocketProvider
from web3.exceptions import (
    BlockNotFound,
    ContractCustomError,
    ContractLogicError,
    TransactionNotFound,
    Web3RPCError,
)
from web3.logs import DISCARD

from conftest import ETHER, SUPPLY

GWEI = 10**9
UNKNOWN = "0x" + "ab" * 32


def transfer(w3, sender, to, value, **fields):
    """A signed transfer with what every kind of transaction needs; `fields` make the kind."""
    transaction = {
        "chainId": w3.eth.chain_id,
        "nonce": w3.eth.get_transaction_count(sender.address, "pending"),
        "to": to,
        "value": value,
        "gas": 21_000,
        **fields,
    }
    return sender.sign_transaction(transaction)


def send(w3, *arguments, **fields):
    return w3.eth.send_raw_transaction(transfer(w3, *arguments, **fields).raw_transaction)


def enough(w3):
    """A price that a transaction may offer however busy the next block is."""
    return 2 * w3.eth.gas_price + GWEI


def mapping_slot(address, slot):
    return Web3.solidity_keccak(["uint256", "uint256"], [int(address, 16), slot])


def custom_error(contract, name, *arguments):
    """The data with which a contract reverts by one of its own errors."""
    (abi,) = (entry for entry in contract.abi if entry["type"] == "error" and entry["name"] == name)
    types = [field["type"] for field in abi["inputs"]]
    selector = Web3.keccak(text=f"{name}({','.join(types)})")[:4]
    return "0x" + (selector + contract.w3.codec.encode(types, arguments)).hex()


def test_chain_and_client(w3):
    assert w3.is_connected()
    assert w3.eth.chain_id > 0
    assert int(w3.net.version) == w3.eth.chain_id
    assert "/" in w3.client_version


def test_balance_and_nonce(w3, owner, other, stranger):
    assert w3.eth.get_balance(owner.address) > 10 * ETHER
    assert w3.eth.get_balance(other.address) > 10 * ETHER
    assert w3.eth.get_balance(stranger) == 0
    assert w3.eth.get_transaction_count(stranger) == 0
    assert w3.eth.get_code(stranger) == b""


def check_transfer(w3, owner, stranger, receipt, value, before):
    block = w3.eth.get_block(receipt["blockNumber"])
    assert receipt["status"] == 1
    assert receipt["from"] == owner.address
    assert receipt["to"] == stranger
    assert receipt["contractAddress"] is None
    assert receipt["logs"] == []
    assert receipt["blockHash"] == block["hash"]
    assert receipt["transactionHash"] in block["transactions"]
    assert block["transactions"][receipt["transactionIndex"]] == receipt["transactionHash"]
    assert w3.eth.get_balance(stranger) == value
    fee = receipt["gasUsed"] * receipt["effectiveGasPrice"]
    assert w3.eth.get_balance(owner.address) == before - value - fee
    return block


def test_legacy_transfer(w3, owner, stranger, mined):
    before, price = w3.eth.get_balance(owner.address), enough(w3)
    receipt = mined(send(w3, owner, stranger, 3 * GWEI, gasPrice=price))
    check_transfer(w3, owner, stranger, receipt, 3 * GWEI, before)
    assert receipt["type"] == 0
    assert receipt["gasUsed"] == 21_000
    assert receipt["effectiveGasPrice"] == price
    found = w3.eth.get_transaction(receipt["transactionHash"])
    assert (found["type"], found["gasPrice"], found["value"]) == (0, price, 3 * GWEI)


def test_access_list_transfer(w3, owner, other, stranger, mined):
    access = [{"address": other.address, "storageKeys": ["0x" + "00" * 31 + "07"]}]
    before, price = w3.eth.get_balance(owner.address), enough(w3)
    receipt = mined(send(w3, owner, stranger, 5, gas=30_000, gasPrice=price, accessList=access))
    check_transfer(w3, owner, stranger, receipt, 5, before)
    assert receipt["type"] == 1
    assert receipt["gasUsed"] == 21_000 + 2_400 + 1_900
    assert receipt["effectiveGasPrice"] == price
    (entry,) = w3.eth.get_transaction(receipt["transactionHash"])["accessList"]
    assert entry["address"] == other.address
    assert list(entry["storageKeys"]) == access[0]["storageKeys"]


def test_fee_market_transfer(w3, owner, stranger, mined):
    before, most = w3.eth.get_balance(owner.address), enough(w3)
    receipt = mined(send(w3, owner, stranger, 7, maxFeePerGas=most, maxPriorityFeePerGas=GWEI))
    block = check_transfer(w3, owner, stranger, receipt, 7, before)
    assert receipt["type"] == 2
    assert receipt["gasUsed"] == 21_000
    assert receipt["effectiveGasPrice"] == min(most, block["baseFeePerGas"] + GWEI)
    found = w3.eth.get_transaction(receipt["transactionHash"])
    assert (found["maxFeePerGas"], found["maxPriorityFeePerGas"]) == (most, GWEI)


def test_nonce_counts_what_is_mined(w3, owner, stranger, mined):
    before = w3.eth.get_transaction_count(owner.address)
    receipt = mined(w3.eth.send_transaction({"from": owner.address, "to": stranger, "value": 1}))
    assert w3.eth.get_transaction_count(owner.address) == before + 1
    assert w3.eth.get_transaction(receipt["transactionHash"])["nonce"] == before
    number = receipt["blockNumber"]
    assert w3.eth.get_transaction_count(owner.address, number - 1) == before
    assert w3.eth.get_balance(stranger, number - 1) == 0
    assert w3.eth.get_balance(stranger, number) == 1


def test_deploy(w3, owner, deploy):
    nonce = w3.eth.get_transaction_count(owner.address, "pending")
    token, receipt = deploy("Token", "Another", "ANO", SUPPLY)
    assert receipt["to"] is None
    assert token.address == created_address(owner.address, nonce)
    assert token.functions.name().call() == "Another"
    assert token.functions.symbol().call() == "ANO"
    assert token.functions.decimals().call() == 18
    assert token.functions.totalSupply().call() == SUPPLY
    assert token.functions.balanceOf(owner.address).call() == SUPPLY
    (minted,) = token.events.Transfer().process_receipt(receipt)
    assert dict(minted["args"]) == {"from": "0x" + "00" * 20, "to": owner.address, "value": SUPPLY}


def created_address(sender, nonce):
    """Where a contract goes: the hash of the list of its sender and nonce, in RLP."""
    number = nonce.to_bytes((nonce.bit_length() + 7) // 8, "big")
    if len(number) != 1 or number[0] >= 0x80:
        number = bytes([0x80 + len(number)]) + number
    payload = bytes([0x94]) + bytes.fromhex(sender[2:]) + number
    return Web3.to_checksum_address(Web3.keccak(bytes([0xC0 + len(payload)]) + payload)[12:])


def test_token_transfer_and_its_log(w3, owner, stranger, token, mined):
    before = token.functions.balanceOf(owner.address).call()
    receipt = mined(token.functions.transfer(stranger, 42).transact({"from": owner.address}))
    assert receipt["status"] == 1
    assert token.functions.balanceOf(stranger).call() == 42
    assert token.functions.balanceOf(owner.address).call() == before - 42
    (event,) = token.events.Transfer().process_receipt(receipt)
    assert dict(event["args"]) == {"from": owner.address, "to": stranger, "value": 42}
    assert event["address"] == token.address
    assert event["transactionHash"] == receipt["transactionHash"]
    assert event["blockNumber"] == receipt["blockNumber"]


def test_call_at_an_earlier_block(owner, stranger, token, mined):
    receipt = mined(token.functions.transfer(stranger, 9).transact({"from": owner.address}))
    balance = token.functions.balanceOf(stranger)
    assert balance.call(block_identifier=receipt["blockNumber"] - 1) == 0
    assert balance.call(block_identifier=receipt["blockNumber"]) == 9


def test_logs_by_address_topic_and_range(w3, owner, stranger, token, mined):
    receipts = [
        mined(token.functions.transfer(stranger, value).transact({"from": owner.address}))
        for value in (11, 12, 13)
    ]
    mined(token.functions.approve(stranger, 1).transact({"from": owner.address}))
    heights = [receipt["blockNumber"] for receipt in receipts]
    signature = Web3.keccak(text="Transfer(address,address,uint256)").to_0x_hex()
    receiver = "0x" + "00" * 12 + stranger[2:].lower()
    wanted = {"address": token.address, "topics": [signature, None, receiver]}

    def values(first, last):
        logs = w3.eth.get_logs({**wanted, "fromBlock": first, "toBlock": last})
        return [token.events.Transfer().process_log(log)["args"]["value"] for log in logs]

    assert values(heights[0], heights[2]) == [11, 12, 13]
    assert values(heights[1], heights[1]) == [12]
    assert values(heights[2], "latest") == [13]
    assert w3.eth.get_logs({**wanted, "address": owner.address, "fromBlock": heights[0]}) == []
    by_event = token.events.Transfer().get_logs(
        from_block=heights[0], to_block=heights[2], argument_filters={"to": stranger}
    )
    assert [event["args"]["value"] for event in by_event] == [11, 12, 13]
    by_hash = w3.eth.get_logs({**wanted, "blockHash": receipts[1]["blockHash"]})
    assert [log["transactionHash"] for log in by_hash] == [receipts[1]["transactionHash"]]


def test_storage(w3, owner, token, stranger, mined):
    mined(token.functions.transfer(stranger, 77).transact({"from": owner.address}))
    assert int.from_bytes(w3.eth.get_storage_at(token.address, mapping_slot(stranger, 0))) == 77
    assert int.from_bytes(w3.eth.get_storage_at(token.address, 2)) == SUPPLY
    assert w3.eth.get_storage_at(token.address, 1000) == bytes(32)


def test_estimates_suffice(w3, owner, stranger, token, mined):
    plain = {"from": owner.address, "to": stranger, "value": 1}
    estimate = w3.eth.estimate_gas(plain)
    assert 21_000 <= estimate < 22_000
    assert mined(w3.eth.send_transaction({**plain, "gas": estimate}))["gasUsed"] == 21_000
    call = token.functions.transfer(stranger, 5)
    estimate = call.estimate_gas({"from": owner.address})
    assert estimate > 21_000
    receipt = mined(call.transact({"from": owner.address, "gas": estimate}))
    assert receipt["status"] == 1
    assert 21_000 < receipt["gasUsed"] <= estimate


def test_prices(w3):
    assert w3.eth.gas_price >= w3.eth.max_priority_fee >= 0
    newest = w3.eth.block_number
    count = min(4, newest + 1)
    history = w3.eth.fee_history(count, newest, [25, 75])
    assert history["oldestBlock"] == newest + 1 - count
    assert len(history["baseFeePerGas"]) == count + 1
    assert len(history["gasUsedRatio"]) == count
    assert all(0 <= ratio <= 1 for ratio in history["gasUsedRatio"])
    assert [len(rewards) for rewards in history["reward"]] == [2] * count
    for place, base_fee in enumerate(history["baseFeePerGas"][:-1]):
        assert w3.eth.get_block(history["oldestBlock"] + place)["baseFeePerGas"] == base_fee


def test_blocks(w3, owner, stranger, mined):
    receipt = mined(w3.eth.send_transaction({"from": owner.address, "to": stranger, "value": 1}))
    number, place = receipt["blockNumber"], receipt["transactionIndex"]
    block = w3.eth.get_block(number, full_transactions=True)
    assert w3.eth.get_block(block["hash"], full_transactions=True) == block
    assert block["number"] == number
    assert block["parentHash"] == w3.eth.get_block(number - 1)["hash"]
    assert block["timestamp"] >= w3.eth.get_block(number - 1)["timestamp"]
    assert receipt["gasUsed"] <= block["gasUsed"] <= block["gasLimit"]
    found = block["transactions"][place]
    assert found == w3.eth.get_transaction(receipt["transactionHash"])
    assert found == w3.eth.get_transaction_by_block(number, place)
    assert (found["from"], found["to"], found["value"]) == (owner.address, stranger, 1)
    assert w3.eth.get_block_transaction_count(number) == len(block["transactions"])


def test_what_is_mined_is_final(w3, owner, stranger, mined):
    receipt = mined(w3.eth.send_transaction({"from": owner.address, "to": stranger, "value": 1}))
    heights = [w3.eth.get_block(tag)["number"] for tag in ("finalized", "safe", "latest")]
    assert heights == sorted(heights)
    assert heights[0] >= receipt["blockNumber"]
    assert w3.eth.get_block("earliest")["number"] == 0


def test_custom_error(w3, stranger, token, owner):
    call = token.functions.transfer(owner.address, 1)
    expected = custom_error(token, "InsufficientBalance", stranger, 0, 1)
    with pytest.raises(ContractCustomError) as refused:
        call.call({"from": stranger})
    assert refused.value.data == expected
    with pytest.raises(ContractCustomError) as refused:
        call.estimate_gas({"from": stranger})
    assert refused.value.data == expected


def test_revert_with_a_string(token, owner):
    call = token.functions.transfer("0x" + "00" * 20, 1)
    with pytest.raises(ContractLogicError, match="Token: transfer to the zero address"):
        call.call({"from": owner.address})


def test_a_failing_transaction_is_mined(w3, owner, stranger, token, mined):
    nonce = w3.eth.get_transaction_count(owner.address)
    call = token.functions.transferFrom(stranger, owner.address, 1)
    receipt = mined(call.transact({"from": owner.address, "gas": 100_000}))
    assert receipt["status"] == 0
    assert 21_000 < receipt["gasUsed"] < 100_000
    assert receipt["logs"] == []
    assert w3.eth.get_transaction_count(owner.address) == nonce + 1


def quote(amount, reserve_in, reserve_out):
    return amount * 997 * reserve_out // (reserve_in * 1000 + amount * 997)


def test_exchange(w3, owner, other, deploy, mined):
    first, _ = deploy("Token", "First", "ONE", SUPPLY)
    second, _ = deploy("Token", "Second", "TWO", SUPPLY)
    exchange, _ = deploy("Exchange", first.address, second.address)

    def run(call, sender=owner):
        receipt = mined(call.transact({"from": sender.address}))
        assert receipt["status"] == 1
        return receipt

    run(first.functions.approve(exchange.address, SUPPLY))
    run(second.functions.approve(exchange.address, SUPPLY))
    added = run(exchange.functions.addLiquidity(1_000_000, 4_000_000))
    (liquidity,) = exchange.events.Liquidity().process_receipt(added, errors=DISCARD)
    assert dict(liquidity["args"]) == {
        "provider": owner.address,
        "amount0": 1_000_000,
        "amount1": 4_000_000,
        "shares": 2_000_000 - 1_000,
    }
    assert exchange.functions.reserves().call() == [1_000_000, 4_000_000]

    run(first.functions.transfer(other.address, 10_000))
    run(first.functions.approve(exchange.address, 10_000), other)
    out = quote(10_000, 1_000_000, 4_000_000)
    swapped = run(exchange.functions.swap(first.address, 10_000, out), other)
    (swap,) = exchange.events.Swap().process_receipt(swapped, errors=DISCARD)
    assert dict(swap["args"]) == {
        "trader": other.address,
        "tokenIn": first.address,
        "amountIn": 10_000,
        "amountOut": out,
    }
    assert len(swapped["logs"]) == 3
    assert exchange.functions.reserves().call() == [1_010_000, 4_000_000 - out]
    assert second.functions.balanceOf(other.address).call() == out

    with pytest.raises(ContractCustomError) as refused:
        exchange.functions.swap(second.address, 1_000, 1_000).call({"from": owner.address})
    offered = quote(1_000, 4_000_000 - out, 1_010_000)
    assert refused.value.data == custom_error(exchange, "InsufficientOutput", offered, 1_000)

    # A later deposit is taken at the pool's price: the shares rounded down, what they cost rounded up.
    shares = 100_000 * 2_000_000 // 1_010_000
    more = run(exchange.functions.addLiquidity(100_000, SUPPLY // 2))
    (liquidity,) = exchange.events.Liquidity().process_receipt(more, errors=DISCARD)
    amounts = [-(-shares * reserve // 2_000_000) for reserve in (1_010_000, 4_000_000 - out)]
    assert liquidity["args"]["shares"] == shares
    assert [liquidity["args"]["amount0"], liquidity["args"]["amount1"]] == amounts

    reserves = [1_010_000 + amounts[0], 4_000_000 - out + amounts[1]]
    assert exchange.functions.reserves().call() == reserves
    run(exchange.functions.removeLiquidity(1_000_000))
    left = [reserve - reserve * 1_000_000 // (2_000_000 + shares) for reserve in reserves]
    assert exchange.functions.reserves().call() == left
    assert exchange.functions.sharesOf(owner.address).call() == 999_000 + shares
    assert first.functions.balanceOf(exchange.address).call() == left[0]
    assert second.functions.balanceOf(exchange.address).call() == left[1]


def test_a_used_nonce_is_refused(w3, owner, stranger, mined):
    used = mined(w3.eth.send_transaction({"from": owner.address, "to": stranger, "value": 1}))
    nonce = w3.eth.get_transaction(used["transactionHash"])["nonce"]
    with pytest.raises(Web3RPCError, match="(?i)nonce too low"):
        send(w3, owner, stranger, 2, nonce=nonce, gasPrice=enough(w3))
    assert w3.eth.get_balance(stranger) == 1


def test_more_than_the_balance_is_refused(w3, stranger):
    poor = Account.create()
    with pytest.raises(Web3RPCError, match="(?i)funds"):
        send(w3, poor, stranger, ETHER, gasPrice=enough(w3))


def test_a_transaction_for_another_chain_is_refused(w3, owner, stranger):
    nonce = w3.eth.get_transaction_count(owner.address, "pending")
    with pytest.raises(Web3RPCError):
        send(w3, owner, stranger, 1, chainId=w3.eth.chain_id + 1, gasPrice=enough(w3))
    assert w3.eth.get_transaction_count(owner.address, "pending") == nonce


def test_three_transactions_back_to_back(w3, other, stranger, mined):
    first = w3.eth.get_transaction_count(other.address, "pending")
    sent = [send(w3, other, stranger, 1, gasPrice=enough(w3)) for _ in range(3)]
    assert [mined(digest)["status"] for digest in sent] == [1, 1, 1]
    nonces = [w3.eth.get_transaction(digest)["nonce"] for digest in sent]
    assert nonces == [first, first + 1, first + 2]
    assert w3.eth.get_balance(stranger) == 3


def test_what_is_unknown(w3):
    for method in ("eth_getTransactionByHash", "eth_getTransactionReceipt"):
        assert w3.provider.make_request(method, [UNKNOWN])["result"] is None
    assert w3.provider.make_request("eth_getBlockByHash", [UNKNOWN, False])["result"] is None
    with pytest.raises(TransactionNotFound):
        w3.eth.get_transaction(UNKNOWN)
    with pytest.raises(TransactionNotFound):
        w3.eth.get_transaction_receipt(UNKNOWN)
    with pytest.raises(BlockNotFound):
        w3.eth.get_block(w3.eth.block_number + 1_000_000)
    assert "error" in w3.provider.make_request("eth_noSuchMethod", [])


def test_batch(w3, owner, token):
    with w3.batch_requests() as batch:
        batch.add(w3.eth.get_block(0))
        batch.add(w3.eth.get_balance(owner.address))
        batch.add(token.functions.totalSupply())
        genesis, balance, supply = batch.execute()
    assert genesis["number"] == 0
    assert balance == w3.eth.get_balance(owner.address)
    assert supply == SUPPLY


def test_subscriptions(ws_url, w3, owner, stranger, token):
    head, log = asyncio.run(asyncio.wait_for(watch(ws_url, w3, owner, stranger, token), 120))
    event = token.events.Transfer().process_log(log)
    assert dict(event["args"]) == {"from": owner.address, "to": stranger, "value": 21}
    block = w3.eth.get_block(log["blockNumber"])
    assert head["hash"] == block["hash"] == log["blockHash"]
    assert head["parentHash"] == block["parentHash"]
    assert head["number"] == block["number"]


async def watch(ws_url, w3, owner, stranger, token):
    """Subscribes, then sends tokens; gives the head and the log of that transfer."""
    async with AsyncWeb3(WebSocketProvider(ws_url)) as watcher:
        assert await watcher.eth.chain_id == w3.eth.chain_id
        receiver = "0x" + "00" * 12 + stranger[2:].lower()
        signature = Web3.keccak(text="Transfer(address,address,uint256)").to_0x_hex()
        heads = await watcher.eth.subscribe("newHeads")
        logs = await watcher.eth.subscribe(
            "logs", {"address": token.address, "topics": [signature, None, receiver]}
        )
        call = token.functions.transfer(stranger, 21)
        await asyncio.to_thread(call.transact, {"from": owner.address})
        seen, log = {}, None
        async for message in watcher.socket.process_subscriptions():
            if message["subscription"] == heads:
                seen[message["result"]["hash"]] = message["result"]
            else:
                assert message["subscription"] == logs
                assert log is None
                log = message["result"]
            if log is not None and log["blockHash"] in seen:
                break
        assert await watcher.eth.unsubscribe(heads)
        assert await watcher.eth.unsubscribe(logs)
        return seen[log["blockHash"]], log
