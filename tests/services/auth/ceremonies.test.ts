import { expect, test } from "vitest";
import { type CeremonyScope, createChallenges } from "../../../services/auth/ceremonies.ts";

const scope: CeremonyScope = { kind: "login", rpId: "desk.example", origin: "https://desk.example", browser: "b" };

test("the number of open ceremonies is bounded, and a flood drops those of its own client", { tags: ["G17"] }, () => {
  const challenges = createChallenges<number>(Date.now);
  const owner = challenges.issue(scope, "192.0.2.1", 0);
  const flood = Array.from({ length: 100_000 }, (_, i) => challenges.issue(scope, `198.51.100.${i % 20}`, i));
  const kept = flood.map((challenge) => challenges.take(challenge, scope)).filter((i) => i !== undefined);
  expect(kept.length).toBeLessThan(4_096);
  expect(Math.min(...kept)).toBeGreaterThan(90_000);
  expect(challenges.take(owner, scope)).toBe(0);
});

test(
  "a single client keeps its newest 512, and all addresses of an IPv6 customer count as one client",
  { tags: ["G17"] },
  () => {
    const challenges = createChallenges<number>(Date.now);
    const flood = Array.from({ length: 2_000 }, (_, i) => challenges.issue(scope, `2001:db8::${i.toString(16)}`, i));
    expect(flood.filter((challenge) => challenges.take(challenge, scope) !== undefined)).toEqual(flood.slice(-512));
  },
);

test("a challenge is used up by its first attempt, even one of another scope, and expires after five minutes", {
  tags: ["G08"],
}, () => {
  let nowMs = 0;
  const challenges = createChallenges<string>(() => nowMs);
  for (const other of [{ kind: "register" }, { rpId: "x" }, { origin: "x" }, { browser: "x" }] as const) {
    const challenge = challenges.issue(scope, "192.0.2.1", "memory");
    expect(challenges.take(challenge, { ...scope, ...other })).toBeUndefined();
    expect(challenges.take(challenge, scope)).toBeUndefined();
  }
  const [early, late] = [challenges.issue(scope, "192.0.2.1", "a"), challenges.issue(scope, "192.0.2.1", "b")];
  nowMs = 5 * 60 * 1000 - 1;
  expect(challenges.take(early, scope)).toBe("a");
  nowMs++;
  expect(challenges.take(late, scope)).toBeUndefined();
});
