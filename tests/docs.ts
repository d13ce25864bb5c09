/** Writes the pages of docs/ that are made from code: `deno task docs`. Ends with 1 if a security case has no test. */
import { renderConfigurationPage } from "../services/config/config_keys.ts";
import { problemsOf, productSources, securityCasesPage, testsByCase } from "./security_cases_page.ts";

const DOCS = new URL("../docs/", import.meta.url);

await Deno.writeTextFile(new URL("configuration.md", DOCS), renderConfigurationPage());
const tests = await testsByCase();
await Deno.writeTextFile(new URL("security-cases.md", DOCS), securityCasesPage(tests));
const problems = problemsOf(tests, await productSources());
for (const problem of problems) console.error(problem);
Deno.exit(problems.length === 0 ? 0 : 1);
