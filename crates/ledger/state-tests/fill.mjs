// Fills own.json: state tests in the form of Ethereum's public ones, whose expected roots come from EthereumJS,
// which shares no code with the ledger's machine.  npm install && npm run fill
import { createBlock } from '@ethereumjs/block'
import { Common, Hardfork, Mainnet } from '@ethereumjs/common'
import { RLP } from '@ethereumjs/rlp'
import { MerkleStateManager } from '@ethereumjs/statemanager'
import { createTx } from '@ethereumjs/tx'
import {
  Account, bytesToHex, createAddressFromPrivateKey, createAddressFromString, hexToBytes,
} from '@ethereumjs/util'
import { createVM, runTx } from '@ethereumjs/vm'
import { keccak_256 as keccak } from '@noble/hashes/sha3.js'
import { readFileSync } from 'node:fs'

const common = new Common({ chain: Mainnet, hardfork: Hardfork.Prague })

const KEY = '0x' + '45'.repeat(32)
const SENDER = createAddressFromPrivateKey(hexToBytes(KEY)).toString()
const CALLED = '0x00000000000000000000000000000000000c0de0'
const OTHER = '0x0000000000000000000000000000000000000d0e'
const WORD = (n) => '0x' + BigInt(n).toString(16).padStart(64, '0')
const RICH = { balance: '0x0de0b6b3a7640000', nonce: '0x05', code: '0x', storage: {} }

const env = {
  currentBaseFee: '0x07',
  currentCoinbase: '0x2adc25665018aa1fe0e6bc666dac8fc2697ff9ba',
  currentDifficulty: '0x00',
  currentExcessBlobGas: '0x00',
  currentGasLimit: '0x05f5e100',
  currentNumber: '0x2a',
  currentRandom: WORD(0x5eed),
  currentTimestamp: '0x6553f100',
}

const legacy = { gasPrice: '0x0a' }
const fees = { maxFeePerGas: '0x64', maxPriorityFeePerGas: '0x03' }

// A contract with this code and storage, called.
const called = (code, { storage = {}, balance = '0x00', tx = {}, others = {} } = {}) => ({
  pre: { [CALLED]: { balance, nonce: '0x01', code, storage }, ...others },
  tx: { to: CALLED, ...fees, ...tx },
})

// For each opcode that gives a value: the opcode, PUSH1 of a slot, SSTORE.
const stores = (opcodes) => '0x' + opcodes.map((op, slot) => `${op}60${slot.toString(16).padStart(2, '0')}55`).join('')
const token = JSON.parse(readFileSync(new URL('../../../contracts/artifacts/Token.json', import.meta.url)))
const supply = WORD(1000000).slice(2)

const tests = {
  a_transfer: { pre: {}, tx: { to: OTHER, value: '0x0123', ...legacy } },
  a_transfer_of_nothing_to_nobody: { pre: {}, tx: { to: OTHER, ...legacy } },
  a_token_is_created: { pre: {}, tx: { to: '', data: token.bytecode + supply, gas: '0x1e8480', ...fees } },
  slots_are_set_changed_and_cleared: called('0x600160005560006001556003600255', {
    storage: { '0x01': '0x0a', '0x02': '0x02', '0x07': '0x63' },
  }),
  a_block_shows_itself: called(stores(['43', '42', '41', '44', '45', '48', '46', '3a', '32', '4a'])),
  logs_of_three_topics: called('0x7fdeadbeef0000000000000000000000000000000000000000000000000000000060005260036002600160206000a360006000a0'),
  a_revert_undoes_and_costs: called('0x6001600055602a60005260206000fd'),
  gas_runs_out: called('0x5b600056', { tx: { gas: '0xc350' } }),
  transient_storage_and_copies: called('0x602a60005d60005c60005260206000602060405e60605160015560405160025560005c600355'),
  an_old_contract_destroys_itself_in_part: called(`0x73${OTHER.slice(2)}ff`, { balance: '0x64', storage: { '0x01': '0x01' } }),
  // CREATE of init code that destroys itself: it is gone with its slot.
  a_new_contract_destroys_itself: called(
    '0x7f6001600055' + '6000ff'.padEnd(52, '0') + '600052600860006007f0600055', { balance: '0x07' }),
  a_call_fails_and_its_caller_goes_on: called(`0x6000600060006000600173${OTHER.slice(2)}5af1600101600055`, {
    others: { [OTHER]: { balance: '0x00', nonce: '0x01', code: '0x60016000556000600052fe', storage: {} } },
  }),
  // SHA-256 of nothing, and the sum of BLS12-381's point at infinity with itself (EIP-2537).
  precompiles: called('0x602060006000600060025afa600055600051600155608060006101006000600b5afa600255'),
  an_access_list: called('0x60016000540160005560025460035560' + '0073' + OTHER.slice(2) + '3160045550', {
    storage: { '0x00': '0x05', '0x02': '0x08' },
    tx: { accessLists: [[{ address: CALLED, storageKeys: [WORD(0), WORD(2)] }, { address: OTHER, storageKeys: [] }]],
      maxFeePerGas: undefined, maxPriorityFeePerGas: undefined, gasPrice: '0x09' },
  }),
  a_nonce_too_high: { pre: {}, tx: { to: OTHER, nonce: '0x06', ...legacy }, error: 'TransactionException.NONCE_MISMATCH_TOO_HIGH' },
  a_nonce_too_low: { pre: {}, tx: { to: OTHER, nonce: '0x04', ...legacy }, error: 'TransactionException.NONCE_MISMATCH_TOO_LOW' },
  more_than_there_is: { pre: {}, tx: { to: OTHER, value: '0x0de0b6b3a7640000', ...legacy }, error: 'TransactionException.INSUFFICIENT_ACCOUNT_FUNDS' },
  more_gas_than_the_block: { pre: {}, tx: { to: OTHER, gas: '0x05f5e101', ...legacy }, error: 'TransactionException.GAS_ALLOWANCE_EXCEEDED' },
  less_than_the_base_fee: { pre: {}, tx: { to: OTHER, gasPrice: '0x06' }, error: 'TransactionException.INSUFFICIENT_MAX_FEE_PER_GAS' },
  too_little_gas_for_its_data: { pre: {}, tx: { to: OTHER, data: '0x' + 'ff'.repeat(100), gas: '0x5a3c', ...legacy }, error: 'TransactionException.INTRINSIC_GAS_TOO_LOW' },
}

const hash = (bytes) => bytesToHex(keccak(bytes))

const fill = async ({ pre, tx, error }) => {
  const state = new MerkleStateManager({ common })
  const all = { [SENDER]: RICH, ...pre }
  for (const [at, account] of Object.entries(all)) {
    const address = createAddressFromString(at)
    await state.putAccount(address, new Account(BigInt(account.nonce), BigInt(account.balance)))
    await state.putCode(address, hexToBytes(account.code))
    for (const [slot, value] of Object.entries(account.storage)) {
      await state.putStorage(address, hexToBytes(WORD(slot)), hexToBytes(value))
    }
  }
  await state.flush()
  const transaction = { data: '0x', gas: '0x0493e0', nonce: '0x05', value: '0x00', ...tx }
  const { gas, accessLists, ...rest } = transaction
  const type = rest.maxFeePerGas ? 2 : accessLists ? 1 : 0
  const fields = { ...rest, to: rest.to || undefined, gasLimit: gas, type, chainId: 1 }
  if (accessLists) fields.accessList = accessLists[0]
  const signed = createTx(fields, { common }).sign(hexToBytes(KEY))
  let logs = []
  if (!error) {
    const block = createBlock({ header: {
      number: env.currentNumber, timestamp: env.currentTimestamp, coinbase: env.currentCoinbase,
      gasLimit: env.currentGasLimit, baseFeePerGas: env.currentBaseFee, mixHash: env.currentRandom, difficulty: 0,
      excessBlobGas: env.currentExcessBlobGas, blobGasUsed: 0,
    } }, { common, skipConsensusFormatValidation: true })
    const vm = await createVM({ common, stateManager: state })
    const result = await runTx(vm, { tx: signed, block, skipHardForkValidation: true })
    logs = result.receipt.logs
  }
  const { to, data, value, ...others } = transaction
  delete others.gas
  return {
    env,
    post: { Prague: [{
      ...(error ? { expectException: error } : {}),
      hash: bytesToHex(await state.getStateRoot()),
      indexes: { data: 0, gas: 0, value: 0 },
      logs: hash(RLP.encode(logs)),
      txbytes: bytesToHex(signed.serialize()),
    }] },
    pre: all,
    transaction: { ...others, data: [data], gasLimit: [gas], secretKey: KEY, sender: SENDER, to, value: [value] },
  }
}

const filled = {}
for (const [name, test] of Object.entries(tests)) filled[name] = await fill(test)
console.log(JSON.stringify(filled, null, 1))
