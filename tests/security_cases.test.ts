import { expect, test } from "vitest";
import { namedTests, problemsOf, productSources, securityCasesPage, testsByCase } from "./security_cases_page.ts";
import { readReports, resultIn, securityCaseLines, unprovenCases } from "./security_results.ts";

const PAGE = new URL("../docs/security-cases.md", import.meta.url);
const NAMED = { file: "tests/x.test.ts", ids: ["K05", "K06"], title: "a %s over 3 rounds (twice)" };

test("every security case has a test that names it, or waits for a feature that doesn't exist", async () => {
  expect(problemsOf(await testsByCase(), await productSources())).toEqual([]);
});

test("docs/security-cases.md is what deno task docs writes", async () => {
  expect(await Deno.readTextFile(PAGE)).toBe(securityCasesPage(await testsByCase()));
});

test("finds a case without a test, an id that is not a case, and a feature that exists by now", async () => {
  const tests = new Map(await testsByCase());
  for (const id of tests.keys()) tests.set(id, [NAMED]);
  for (const id of ["F01", "F02", "F03", "F04", "F06", "F07", "F08", "F09"]) tests.set(id, [NAMED]);
  const awaited = { F05: { feature: "Mermaid diagrams", sign: /mermaid/i } };
  tests.delete("F05");
  expect(problemsOf(tests, [], awaited)).toEqual([]);
  tests.delete("K05");
  tests.set("Z99", []);
  tests.set("F05", [{ ...NAMED, title: "over ${ROUNDS} rounds" }]);
  expect(problemsOf(tests, ["static/src/markdown/mermaid.ts"], awaited)).toEqual([
    "K05 has no test",
    "F05 has a test, and is listed as waiting for a feature",
    'F05 waits for Mermaid diagrams, but there is "static/src/markdown/mermaid.ts"',
    "Z99 is not a case",
    '"over ${ROUNDS} rounds" in tests/x.test.ts: the page can\'t fill in this title; use a number at the top of the file',
  ]);
});

test("numbers of a title are those of the file, samples of all where a usual run takes fewer", () => {
  const text = [
    "const ROUNDS = 10_000;",
    "const KILLS = sample(20, 200);",
    'test(`survives ${KILLS} kills over ${ROUNDS} rounds and ${others}`, { tags: ["D02", "D03"] }, () => {});',
    'test("prints ${KILLS} as it is", { tags: ["D01"] }, () => {});',
    'test("is not a case", () => {});',
  ].join("\n");
  const titles = (isLong: boolean) => namedTests("tests/x.test.ts", text, isLong).map(({ title }) => title);
  expect(titles(false)).toEqual([
    "survives 20 of 200 kills over 10000 rounds and ${others}",
    "prints ${KILLS} as it is",
  ]);
  expect(namedTests("tests/x.test.ts", text, false)[0]!.ids).toEqual(["D02", "D03"]);
  expect(titles(true)[0]).toBe("survives 200 kills over 10000 rounds and ${others}");
});

test.each(
  [
    ["passed", ["passed"]],
    ["passed", ["passed", "passed", "skipped"]],
    ["failed", ["passed", "failed"]],
    ["not run", ["skipped"]],
    ["not run", []],
  ] as const,
)("the result is %s where the rows were %j", (result, statuses) => {
  const others = [
    { file: "tests/y.test.ts", titles: ["a word over 3 rounds (twice)"], status: "failed" },
    { file: "tests/x.test.ts", titles: ["a word over 3 rounds, twice"], status: "failed" },
    { file: "tests/x.test.ts", titles: ["a word over 4 rounds (twice)"], status: "failed" },
    { file: "tests/x.test.ts", titles: ["a word over 3 rounds (twice) and more"], status: "failed" },
  ];
  const rows = statuses.map((status, i) => ({
    file: "tests/x.test.ts",
    titles: [`a word ${i} over 3 rounds (twice)`],
    status,
  }));
  const reported = [...(rows.length > 0 ? others : others.slice(0, 3)), ...rows];
  expect(resultIn(reported, NAMED)).toBe(result);
  expect(unprovenCases(new Map([["K05", [NAMED]]]), reported)).toEqual(
    result === "passed" ? [] : [`K05: "${NAMED.title}" in tests/x.test.ts: ${result}`],
  );
  expect(unprovenCases(new Map([["K05", [NAMED]]]), reported, ["tests/x.test.ts"])).toEqual([]);
});

test("finds a group whose title has the tag", () => {
  const named = { file: "tests/x.test.ts", ids: ["G11"], title: "crossOrigin" };
  const reported = (...titles: string[]) => [{ file: "tests/x.test.ts", titles, status: "passed" }];
  expect(resultIn(reported("it holds", "crossOrigin"), named)).toBe("passed");
  expect(resultIn(reported("it holds", "a crossOrigin"), named)).toBe("not run");
});

test("a run whose reports lack the tests of the cases fails and names them", async () => {
  const folder = await Deno.makeTempDir({ prefix: "parlor-reports-" });
  const assertionResults = [{ title: "t", ancestorTitles: ["g"], status: "passed", fullName: "g t" }];
  try {
    const path = `${folder}/a.json`;
    const testResults = [{ name: "/a/tests/b/tests/x.test.ts", assertionResults }];
    await Deno.writeTextFile(path, JSON.stringify({ testResults }));
    await Deno.writeTextFile(`${folder}/b.json`, "");
    expect(await readReports([path])).toEqual([{ file: "tests/x.test.ts", titles: ["t", "g"], status: "passed" }]);
    const { lines, isGreen } = await securityCaseLines(folder, ["tests/real/container.test.ts"]);
    expect(isGreen).toBe(false);
    expect(lines).toContainEqual(expect.stringMatching(/^FAILED security case D02: .*: not run$/));
    expect(lines).not.toContainEqual(expect.stringMatching(/^FAILED security case H18/));
    expect(lines.at(-2)).toBe("Security cases with tests that this run left out: H18");
    expect(lines.at(-1)).toMatch(/^Security cases: \d+ have tests, \d+ problems$/);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
