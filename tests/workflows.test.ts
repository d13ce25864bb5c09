/** Workflows run with the project's rights, so each action is the one that was looked at: its commit, not a tag. */
import { expect, test } from "vitest";
import { parse } from "yaml";

const FOLDER = ".github/workflows";
const names = Array.from(Deno.readDirSync(FOLDER), ({ name }) => name).sort();

test.each(names)("%s pins each action by its commit, and names its version", async (name) => {
  const lines = (await Deno.readTextFile(`${FOLDER}/${name}`)).split("\n");
  const uses = lines.flatMap((line) => /^\s*(?:- )?uses: (.*)$/.exec(line)?.[1] ?? []);
  expect(uses.length).toBeGreaterThan(0);
  const isPinned = (used: string) =>
    used.startsWith("./") || /^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(used);
  expect(uses.filter((used) => !isPinned(used))).toEqual([]);
});

test("an update rule keeps the actions and base images current", async () => {
  const { updates } = parse(await Deno.readTextFile(".github/dependabot.yml"));
  const rules = updates.map((rule: Record<string, string>) => [rule["package-ecosystem"], rule.directory]);
  expect(rules).toEqual([["github-actions", "/"], ["docker", "/"]]);
});
