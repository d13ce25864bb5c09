import { expect, test } from "vitest";
import { createPageOriginWatch } from "../../../services/auth/page_origin.ts";

const facts = { isPeerLoopback: true, hasForwardingHeader: false, origin: "http://127.0.0.1:8787" };

function watch() {
  const lines: string[] = [];
  return {
    lines,
    watch: createPageOriginWatch({ corsOrigins: ["https://listed.test"], log: (_, line) => lines.push(line) }),
  };
}

test(
  "a page elsewhere behind a bare proxy trips the watch once, for good, with the line to set",
  { tags: ["H17"] },
  () => {
    const { lines, watch: pageOrigins } = watch();
    pageOrigins.note("https://chat.example", facts);
    pageOrigins.note("https://other.example", facts);
    pageOrigins.note(facts.origin, facts);
    expect(pageOrigins.isTripped).toBe(true);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain("https://chat.example");
    expect(lines[0]).toContain("loopback_auth_bypass = false");
  },
);

test("our own page, a listed origin, a remote peer and a proxy that says so prove nothing", { tags: ["H17"] }, () => {
  const { watch: pageOrigins } = watch();
  pageOrigins.note(facts.origin, facts);
  pageOrigins.note("https://listed.test", facts);
  pageOrigins.note("https://chat.example", { ...facts, isPeerLoopback: false });
  pageOrigins.note("https://chat.example", { ...facts, hasForwardingHeader: true });
  expect(pageOrigins.isTripped).toBe(false);
});

test("an invalid origin triggers the warning and stays out of the log", { tags: ["H17"] }, () => {
  const { lines, watch: pageOrigins } = watch();
  pageOrigins.note("secret\u001b[31m", facts);
  expect(pageOrigins.isTripped).toBe(true);
  expect(lines[0]).not.toContain("secret");
});
