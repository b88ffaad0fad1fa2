// The committee: its members, and what they signed.

import { el, fields, filledTable, grouped, plural, quiet, table } from "./base.js";
import { brief, bytes, moment } from "./elements.js";
import { ask } from "./rpc.js";
import { byteCount } from "./text.js";

const MEMBER_COLUMNS = ["Validator", "Key", ["Address", "wide"], ["Weight", "number wide"]];

/** The committee's members, with a last column of the given heading. */
export function membersTable(committee, heading) {
  const own = (member) => (member.index === committee.validator ? quiet(" (serves this page)") : null);
  const cells = ({ member, last }) => [[String(Number(member.index)), own(member)], brief(member.identity), member.address, grouped(member.weight), last];
  const made = table([...MEMBER_COLUMNS, heading], cells, "The committee has no members.");
  const show = (lastOf) => made.show(committee.members.map((member) => ({ key: `${member.index} ${lastOf(member)}`, member, last: lastOf(member) })));
  return { node: made.node, show };
}

/** In how many of these blocks' certificates a member's signature stands; threshold signatures name nobody. */
export function signaturesIn(blocks, member) {
  const certificates = blocks.map((each) => each.certificate).filter((each) => each?.signers.length > 0);
  if (certificates.length === 0) return "–";
  return `${certificates.filter((each) => each.signers.includes(member.index)).length} of ${certificates.length}`;
}

function signersText({ signers }, { members }) {
  if (signers.length === 0) return "so many that an honest one is among them; a threshold signature does not tell who";
  return `${signers.length} of ${plural(members.length, "validator")}: ${signers.map(Number).join(", ")}`;
}

export function certificateSection(number, certificate, block, committee) {
  const heading = el("h2", {}, "Certificate");
  if (number === 0) return [heading, el("p", { class: "quiet" }, "Genesis is where every member starts; nobody signs it.")];
  if (!certificate) return [heading, el("p", { class: "quiet" }, "This validator does not hold a certificate for this block: not yet, or no longer.")];
  const signatures = membersTable(committee, "In the certificate");
  signatures.show((member) => (certificate.signers.includes(member.index) ? "signed" : "no signature"));
  const same = certificate.blockHash === block.hash;
  return [
    heading,
    fields([
      ["Signed by", signersText(certificate, committee)],
      ["Weight", certificate.weight && `${grouped(certificate.weight)} of ${grouped(committee.weight)}, quorum ${grouped(committee.quorum)}`],
      ["Proposed", moment(Number(certificate.proposedAtMs))],
      ["Block hash", [bytes(certificate.blockHash), same ? null : el("span", { class: "bad" }, " is not the hash above")]],
      ["Executed root", bytes(certificate.root)],
      ["State", bytes(certificate.state)],
      ["Sessions", bytes(certificate.sessions)],
      ["Requests", bytes(certificate.requests)],
      ["Certificate", [bytes(certificate.certificate), quiet(plural(byteCount(certificate.certificate), "byte"))]],
    ]),
    certificate.signers.length > 0 ? [el("h2", {}, "Signatures"), signatures.node] : [],
  ];
}

export async function committeePage() {
  const committee = await ask("quorate_committee");
  const cells = ({ member }) => [String(Number(member.index)), [bytes(member.identity), el("div", { class: "quiet" }, member.address)], grouped(member.weight)];
  const items = committee.members.map((member) => ({ key: member.index, member }));
  const body = [
    el("h1", {}, "Committee"),
    fields([
      ["Network", bytes(committee.network)],
      ["Epoch", grouped(committee.epoch)],
      ["Protocol", committee.protocol],
      ["Signature scheme", committee.scheme],
      ["Members", grouped(committee.members.length)],
      ["This validator", committee.validator ? String(Number(committee.validator)) : quiet("a learner, not a member")],
      ["Weight", grouped(committee.weight)],
      ["Quorum", `${grouped(committee.quorum)} of ${grouped(committee.weight)}`],
    ]),
    el("h2", {}, "Members"),
    filledTable(["Validator", ["Key and address", "cut"], ["Weight", "number"]], cells, items, "The committee has no members."),
  ];
  return { title: "Committee", body };
}
