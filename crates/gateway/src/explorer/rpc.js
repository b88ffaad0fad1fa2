// Asking the validator that served the page, by JSON-RPC, and nobody else. Calls made together travel together.

import { learnAddresses } from "./hashes.js";

const BATCH = 50; // Calls in one request.
const TOKEN = "quorate-token"; // Name of the validator's token in this tab's storage, if the validator asks for one.
const PATIENCE = 10_000; // Milliseconds until an answer is no longer waited for.

export class Unreachable extends Error {}
export class NotFound extends Error {}

/** An answer that is an error; `data` is what a call returned that was reverted. */
export class Refused extends Error {
  constructor(message, data = null) {
    super(message);
    this.data = data;
  }
}

export class TokenNeeded extends Refused {}

const waiting = [];

/** The answer, whose addresses can be written with their checksums by then. */
export async function ask(method, ...params) {
  const [answer] = await Promise.all([askPlainly(method, ...params), learnAddresses(params, askPlainly)]);
  await learnAddresses(answer ?? null, askPlainly);
  return answer;
}

export function askPlainly(method, ...params) {
  return new Promise((resolve, reject) => {
    if (waiting.length === 0) queueMicrotask(sendWaiting);
    waiting.push({ method, params, resolve, reject });
  });
}

function sendWaiting() {
  const calls = waiting.splice(0);
  for (let at = 0; at < calls.length; at += BATCH) send(calls.slice(at, at + BATCH));
}

async function send(calls) {
  try {
    const answers = await post(calls.map(({ method, params }, id) => ({ jsonrpc: "2.0", id, method, params })));
    if (!Array.isArray(answers)) throw new Refused(answers?.error?.message ?? "not an answer to a batch");
    const byId = new Map(answers.map((answer) => [answer.id, answer]));
    calls.forEach((call, id) => settle(call, byId.get(id)));
  } catch (failure) {
    calls.forEach((call) => call.reject(failure));
  }
}

async function post(body) {
  const token = sessionStorage.getItem(TOKEN);
  try {
    const headers = { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) };
    const response = await fetch("/", { method: "POST", headers, body: JSON.stringify(body), signal: AbortSignal.timeout(PATIENCE) });
    if (response.status !== 401) return await response.json();
  } catch (failure) {
    throw new Unreachable(failure.message);
  }
  throw new TokenNeeded(token ? "it takes another token" : "it asks for a token");
}

function settle(call, answer) {
  if (answer && "result" in answer) call.resolve(answer.result);
  else call.reject(new Refused(`${call.method}: ${answer?.error?.message ?? "no answer"}`, answer?.error?.data));
}

export function keepToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

export function explained(failure) {
  if (failure instanceof Unreachable) return "This validator does not answer.";
  if (failure instanceof Refused) return `The validator refused: ${failure.message}`;
  return `The page failed: ${failure.message}`;
}
