import { expect, test } from "vitest";
import { problemsOf, resultKey, resultsOn, securityCasesPage, testsByCase, withResult } from "./security_cases_page.ts";
import { readReports, resultIn } from "./security_results.ts";

const PAGE = new URL("../docs/security-cases.md", import.meta.url);
const NAMED = { file: "tests/x.test.ts", ids: "K05 K06", title: "a %s over ${ROUNDS} rounds (twice)" };

test("every security case has a test that names it, but those that are said to be not built yet", async () => {
  expect(problemsOf(await testsByCase())).toEqual([]);
});

test("docs/security-cases.md is what deno task docs writes, and tells of no test that failed", async () => {
  const page = await Deno.readTextFile(PAGE);
  const [tests, results] = [await testsByCase(), resultsOn(page)];
  expect(page).toBe(securityCasesPage(tests, results));
  expect(withResult(tests, results, "failed")).toEqual([]);
});

test("a case without a test, an id that is none, and one that is built after all are found", async () => {
  const tests = new Map(await testsByCase());
  tests.delete("K05");
  tests.set("Z99", []);
  expect(problemsOf(tests, ["T02"])).toEqual([
    "K05 has no test",
    "T02 has a test and is listed as not built yet",
    "Z99 is no case",
  ]);
});

test.each(
  [
    ["passed", ["passed"]],
    ["passed (2)", ["passed", "passed", "skipped"]],
    ["failed", ["passed", "failed"]],
    [undefined, ["skipped"]],
    [undefined, []],
  ] as const,
)("its result is %s where its rows were %j", (result, statuses) => {
  const others = [
    { file: "tests/y.test.ts", titles: ["K05 K06 a word over 3 rounds (twice)"], status: "failed" },
    { file: "tests/x.test.ts", titles: ["K05 K06 a word over 3 rounds, twice"], status: "failed" },
    { file: "tests/x.test.ts", titles: ["K05 K06 a word over 3 rounds (twice) and more"], status: "failed" },
  ];
  const rows = statuses.map((status, i) => ({
    file: "tests/x.test.ts",
    titles: [`K05 K06 a word ${i} over 3 rounds (twice)`],
    status,
  }));
  expect(resultIn([...(rows.length > 0 ? others : others.slice(0, 2)), ...rows], NAMED)).toBe(result);
});

test("a group whose title names the case, and a row that is a value in the title of its test, are found", () => {
  const named = { file: "tests/x.test.ts", ids: "G11", title: "crossOrigin" };
  const reported = (...titles: string[]) => [{ file: "tests/x.test.ts", titles, status: "passed" }];
  expect(resultIn(reported("it holds", "G11 crossOrigin"), named)).toBe("passed");
  expect(resultIn(reported("an answer with G11 crossOrigin is refused"), named)).toBe("passed");
});

test("reports of vitest are read, and what a page tells of a test is found on it again", async () => {
  const path = await Deno.makeTempFile({ suffix: ".json" });
  const assertionResults = [{ title: "t", ancestorTitles: ["g"], status: "passed", fullName: "g t" }];
  try {
    await Deno.writeTextFile(
      path,
      JSON.stringify({ testResults: [{ name: "/a/tests/b/tests/x.test.ts", assertionResults }] }),
    );
    expect(await readReports([path])).toEqual([{ file: "tests/x.test.ts", titles: ["t", "g"], status: "passed" }]);
  } finally {
    await Deno.remove(path);
  }
  const odd = { ...NAMED, title: 'a | b < c \\ "d"' };
  const tests = new Map([["K05", [NAMED, odd]]]);
  const results = new Map([[resultKey(odd), "passed (3)"], [resultKey(NAMED), "failed"]] as const);
  const page = securityCasesPage(tests, results);
  expect(resultsOn(page).get(resultKey(odd))).toBe("passed (3)");
  expect(page).toBe(securityCasesPage(tests, resultsOn(page)));
  expect(withResult(tests, resultsOn(page), "failed")).toEqual([
    `K05: "${NAMED.title}" in tests/x.test.ts failed`,
  ]);
  expect(withResult(tests, new Map(), "not run")).toHaveLength(2);
});
