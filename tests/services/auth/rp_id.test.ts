import { expect, test } from "vitest";
import { getRpId } from "../../../services/auth/rp_id.ts";
import { rejectionOf } from "../../helpers/app/rejection.ts";

test.each([
  ["a.tail.ts.net", "tail.ts.net", "the parent below the suffix"],
  ["a.b.tail.ts.net", "b.tail.ts.net", "only the leftmost label is dropped"],
  ["tail.ts.net", "tail.ts.net", "the bare suffix is nobody's"],
  ["ts.net", "ts.net", "the suffix itself"],
  ["xts.net", "xts.net", "no label boundary"],
  ["a.xts.net", "a.xts.net", "no label boundary above"],
  ["a.ts.net.evil.test", "a.ts.net.evil.test", "the suffix in the middle"],
  ["a.tail.test", "tail.test", "the own node's suffix"],
  ["tail.test", "tail.test", "the own suffix itself"],
  ["a.b.tail.test", "a.b.tail.test", "two labels below the own suffix"],
  ["localhost", "localhost", "one label"],
  ["192.168.1.5", "192.168.1.5", "an address"],
  ["[fe80::1]", "[fe80::1]", "an IPv6 address"],
])("the relying party of %s is %s: %s", { tags: ["G18"] }, (host, rpId) => {
  expect(getRpId(host, "ts.net", "tail.test")).toBe(rpId);
});

test("an empty host has no relying party", () => {
  expect(rejectionOf(() => getRpId("", "ts.net"))).toMatchObject({ code: "invalid_request" });
});
