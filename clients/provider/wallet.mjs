// A wallet in a page: the parts of which MetaMask makes its provider, in the order of its network client for a network that
// somebody adds, and a key that signs whatever it is asked to. Announced by EIP-6963.
import { PollingBlockTracker } from "@metamask/eth-block-tracker";
import {
  createBlockCacheMiddleware,
  createBlockRefRewriteMiddleware,
  createBlockTrackerInspectorMiddleware,
  createFetchMiddleware,
  createInflightCacheMiddleware,
  createWalletMiddleware,
} from "@metamask/eth-json-rpc-middleware";
import { providerFromMiddleware } from "@metamask/eth-json-rpc-provider";
import { createScaffoldMiddleware, mergeMiddleware } from "@metamask/json-rpc-engine";
import { BrowserProvider, Wallet, getBytes } from "ethers";

/** Milliseconds, as in MetaMask's own tests; 20,000 in a browser that somebody uses. */
const POLLING = 1_000;
const INFO = {
  uuid: crypto.randomUUID(),
  name: "A key that signs",
  icon: "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'/>",
  rdns: "example.quorate.key",
};

/** Asks the ledger from the page's origin, which is not the ledger's. */
function ledger(url) {
  const request = async (asked, options) => {
    const headers = { ...options.headers, accept: "application/json", "content-type": "application/json" };
    const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(asked) });
    return response.json();
  };
  return createFetchMiddleware({ rpcService: { request } });
}

function network(url) {
  const fetching = ledger(url);
  const blockTracker = new PollingBlockTracker({ provider: providerFromMiddleware(fetching), pollingInterval: POLLING });
  // It polls as long as somebody listens; in MetaMask somebody always does.
  blockTracker.on("latest", () => {});
  return mergeMiddleware([
    createBlockRefRewriteMiddleware({ blockTracker }),
    createBlockCacheMiddleware({ blockTracker }),
    createInflightCacheMiddleware(),
    createBlockTrackerInspectorMiddleware({ blockTracker }),
    fetching,
  ]);
}

/** What the key answers; all else is the ledger's. */
function signing(key, provider) {
  const signer = new Wallet(key, new BrowserProvider(provider));
  const getAccounts = async () => [signer.address.toLowerCase()];
  const wallet = createWalletMiddleware({
    getAccounts,
    async processTransaction({ gas: gasLimit, ...fields }) {
      const { hash } = await signer.sendTransaction({ ...fields, gasLimit });
      return hash;
    },
    processPersonalMessage: ({ data }) => signer.signMessage(getBytes(data)),
    processTypedMessageV4({ data }) {
      const { domain, message, types } = JSON.parse(data);
      delete types.EIP712Domain;
      return signer.signTypedData(domain, types, message);
    },
  });
  const asked = createScaffoldMiddleware({
    async eth_requestAccounts(_request, response, _next, end) {
      response.result = await getAccounts();
      end();
    },
  });
  return mergeMiddleware([asked, wallet]);
}

function injected({ key, url }) {
  const reached = network(url);
  return providerFromMiddleware(mergeMiddleware([signing(key, providerFromMiddleware(reached)), reached]));
}

function announce() {
  const detail = Object.freeze({ info: INFO, provider: window.ethereum });
  window.dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail }));
}

// What is injected has the key, and the page has not.
window.ethereum = injected(window.quorateWallet);
delete window.quorateWallet;
window.addEventListener("eip6963:requestProvider", announce);
announce();
