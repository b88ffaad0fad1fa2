// A dapp, once with ethers and once with viem: what each makes of the wallet that it finds in the page, under the same names.
// Results are texts and lists of them, since they leave the page.
import { BrowserProvider, Contract, ContractFactory, verifyMessage, verifyTypedData } from "ethers";
import {
  ContractFunctionRevertedError,
  createPublicClient,
  createWalletClient,
  custom,
  recoverMessageAddress,
  recoverTypedDataAddress,
} from "viem";
import token from "../../contracts/artifacts/Token.json";

const SUPPLY = 1_000n;
const SYMBOL = ["Quorate", "QRT"];
const MAIL = { types: { Mail: [{ name: "text", type: "string" }] }, message: { text: "hello" } };

/** The first wallet that answers. */
function found() {
  return new Promise((resolve) => {
    window.addEventListener("eip6963:announceProvider", ({ detail }) => resolve(detail), { once: true });
    window.dispatchEvent(new Event("eip6963:requestProvider"));
  });
}

async function withEthers(wallet) {
  const provider = new BrowserProvider(wallet);
  const signer = await provider.getSigner();
  const { chainId } = await provider.getNetwork();
  let contract;
  return {
    account: () => signer.address,
    balance: async (address) => String(await provider.getBalance(address)),
    async pay(to, value) {
      const { hash } = await (await signer.sendTransaction({ to, value })).wait();
      return hash;
    },
    async deploy() {
      contract = await new ContractFactory(token.abi, token.bytecode, signer).deploy(...SYMBOL, SUPPLY);
      await contract.waitForDeployment();
      return contract.getAddress();
    },
    async transfer(to, value) {
      const { hash, logs } = await (await contract.transfer(to, value)).wait();
      return [hash, ...logs.map(({ fragment, args }) => `${fragment.name} ${args.value}`)];
    },
    refused: (to, value) =>
      contract.transfer(to, value).then(
        () => "it was taken",
        ({ data }) => {
          const { args, name } = contract.interface.parseError(data);
          return [name, ...args].join(" ");
        },
      ),
    blocks: (count) =>
      new Promise((resolve) => {
        const heard = [];
        provider.on("block", (number) => {
          if (heard.push(String(number)) === count) resolve(provider.off("block").then(() => heard));
        });
      }),
    signed: async (text) => verifyMessage(text, await signer.signMessage(text)),
    async signedTyped() {
      const domain = { chainId, name: "Quorate" };
      const signature = await signer.signTypedData(domain, MAIL.types, MAIL.message);
      return verifyTypedData(domain, MAIL.types, MAIL.message, signature);
    },
  };
}

async function withViem(wallet) {
  const transport = custom(wallet);
  const reader = createPublicClient({ transport });
  const [account] = await createWalletClient({ transport }).requestAddresses();
  const client = createWalletClient({ account, transport });
  const chainId = await reader.getChainId();
  const { abi, bytecode } = token;
  const mined = async (sent) => reader.waitForTransactionReceipt({ hash: await sent });
  let address;
  return {
    account: () => account,
    balance: async (of) => String(await reader.getBalance({ address: of })),
    async pay(to, value) {
      const { transactionHash } = await mined(client.sendTransaction({ chain: null, to, value: BigInt(value) }));
      return transactionHash;
    },
    async deploy() {
      const sent = client.deployContract({ abi, args: [...SYMBOL, SUPPLY], bytecode, chain: null });
      ({ contractAddress: address } = await mined(sent));
      return address;
    },
    async transfer(to, value) {
      const args = [to, BigInt(value)];
      const sent = client.writeContract({ abi, address, args, chain: null, functionName: "transfer" });
      const { blockNumber, transactionHash } = await mined(sent);
      const asked = { abi, address, eventName: "Transfer", fromBlock: blockNumber, toBlock: blockNumber };
      const events = await reader.getContractEvents(asked);
      return [transactionHash, ...events.map(({ args, eventName }) => `${eventName} ${args.value}`)];
    },
    refused: (to, value) =>
      reader.simulateContract({ abi, account, address, args: [to, BigInt(value)], functionName: "transfer" }).then(
        () => "it was taken",
        (error) => {
          const { data } = error.walk((cause) => cause instanceof ContractFunctionRevertedError);
          return [data.errorName, ...data.args].join(" ");
        },
      ),
    blocks: (count) =>
      new Promise((resolve) => {
        const heard = [];
        const stop = reader.watchBlockNumber({
          emitMissed: true,
          onBlockNumber(number) {
            if (heard.push(String(number)) === count) resolve(heard);
            if (heard.length >= count) stop();
          },
        });
      }),
    signed: async (text) =>
      recoverMessageAddress({ message: text, signature: await client.signMessage({ message: text }) }),
    async signedTyped() {
      const typed = { ...MAIL, domain: { chainId: Number(chainId), name: "Quorate" }, primaryType: "Mail" };
      return recoverTypedDataAddress({ ...typed, signature: await client.signTypedData(typed) });
    },
  };
}

const { info, provider } = await found();
window.dapps = { wallet: info.name, ethers: await withEthers(provider), viem: await withViem(provider) };
document.title = "ready";
