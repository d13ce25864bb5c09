/** GitHub's workflows and their scripts, checked with actionlint and shellcheck. */
import { describe, expect, test } from "vitest";
import { tempFolder } from "../helpers/files/storage_folder.ts";
import { realPart } from "./helpers/real_part.ts";

const TOOLS = realPart("REAL_WORKFLOWS_DIR", "workflows.sh");

async function run(program: string, args: string[]): Promise<{ code: number; output: string }> {
  const { code, stdout, stderr } = await new Deno.Command(`${TOOLS}/${program}`, { args }).output();
  return { code, output: new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr) };
}

const lint = (...files: string[]) =>
  run("bin/actionlint", [`-shellcheck=${TOOLS}/usr/bin/shellcheck`, "-pyflakes=", "-no-color", ...files]);

describe.skipIf(TOOLS === undefined)("the workflows", () => {
  test("actionlint finds nothing in them", async () => {
    const workflows = ["release", "test", "weekly"].map((name) => `.github/workflows/${name}.yml`);
    expect(await lint(...workflows)).toEqual({ code: 0, output: "" });
  });

  test("actionlint finds a misspelled expression and a mistake in a script", async () => {
    await using folder = await tempFolder();
    const workflow = await Deno.readTextFile(".github/workflows/test.yml");
    const steps = ["      - run: echo ${{ github.reff }}", "      - run: cat $RUNNER_NAME", ""];
    await Deno.writeTextFile(folder.file("bad.yml"), workflow + steps.join("\n"));
    const { code, output } = await lint(folder.file("bad.yml"));
    expect(code).toBe(1);
    expect(output).toMatch(/property "reff" is not defined[^]*SC2086/);
  });

  test("shellcheck finds nothing in the scripts that they run or publish", async () => {
    const paths = [
      ".ci/run",
      "build/smoke_container.sh",
      "packaging/install.sh",
      "packaging/container/parlor.sh",
      ...["postinst", "prerm", "postrm"].map((name) => `packaging/debian/${name}`),
    ];
    expect(await run("usr/bin/shellcheck", ["--severity=warning", ...paths])).toEqual({ code: 0, output: "" });
  });
});
