import { expect, test } from "vitest";
import { problemsOf, securityCasesPage, testsByCase } from "./security_cases_page.ts";

test("every security case has a test that names it, but those that are said to be not built yet", async () => {
  expect(problemsOf(await testsByCase())).toEqual([]);
});

test("docs/security-cases.md is what deno task docs writes", async () => {
  const page = await Deno.readTextFile(new URL("../docs/security-cases.md", import.meta.url));
  expect(page).toBe(securityCasesPage(await testsByCase()));
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
