import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Sandbox } from "../../../services/platform/sandbox/sandbox.ts";
import { parseTavernScript, type RegexScript, type ScriptText } from "../../../services/regex_scripts/regex_script.ts";
import { type ActiveScript, ScriptRunner } from "../../../services/regex_scripts/script_runner.ts";

/** Time limit for a busy machine. */
const SLOW_MS = 180_000;
let sandbox: Sandbox;
beforeAll(() => void (sandbox = new Sandbox()));
afterAll(() => sandbox.close());

function active(
  fields: Partial<RegexScript>,
  off: string[] = [],
): ActiveScript {
  const script = { ...parseTavernScript({ findRegex: "a", placement: [1, 2] })!, ...fields };
  return { script, switchOff: (problem) => Promise.resolve(void off.push(`${script.name} ${problem}`)) };
}

const said = (...texts: string[]) => texts.map((text): ScriptText => ({ text, placement: "ai_output" }));
const run = { purpose: "display", expand: (text: string) => text.replaceAll("{{char}}", "F.x") } as const;

describe("in the sandbox", { timeout: SLOW_MS }, () => {
  test("runs scripts one after another, on the texts that each is for", async () => {
    const scripts = [
      active({ find: "/a/g", replace: "b" }),
      active({ find: "/b+/", replace: "<$0>", placement: ["user_input"] }),
      active({ find: "/b/g", replace: "c", isDisplayOnly: true }),
    ];
    const texts: ScriptText[] = [{ text: "aab", placement: "ai_output" }, { text: "aab", placement: "user_input" }];
    const result = await new ScriptRunner(sandbox).run(scripts, texts, run);
    expect(result).toEqual({ texts: ["ccc", "<ccc>"], problems: [] });
  });

  test("expands macros in replacements, trim strings and, if wanted, patterns", async () => {
    const runner = new ScriptRunner(sandbox);
    const changed = async (fields: Partial<RegexScript>, text: string) =>
      (await runner.run([active(fields)], said(text), run)).texts[0];
    expect(await changed({ find: "(fox)", replace: "{{char}} the $1" }, "A fox")).toBe("A F.x the fox");
    expect(await changed({ find: "F.x.*", replace: "<$0>", trim: ["{{char}}"] }, "F.x runs")).toBe("< runs>");
    expect(await changed({ find: "/{{char}}/g", replace: "-", findMacros: "escaped" }, "F.x Fox {{char}}"))
      .toBe("- Fox {{char}}");
    expect(await changed({ find: "/{{char}}/g", replace: "-", findMacros: "raw" }, "F.x Fox")).toBe("- -");
    expect(await changed({ find: "/\\{\\{char\\}\\}/g", replace: "-" }, "F.x {{char}}")).toBe("F.x -");
  });

  test("switches off a script that is too slow, and runs the others", async () => {
    const off: string[] = [];
    const scripts = [
      active({ name: "first", find: "/x/g", replace: "y" }, off),
      // A lookahead isn't for V8's linear engine.
      active({ name: "slow", find: "/^(?=(x|y|xy|yx|yy)+$)(x|y|xy|yx|yy)+z(?!a)$/", replace: "" }, off),
      active({ name: "last", find: "/$/", replace: "!" }, off),
    ];
    const text = `${"xy".repeat(40)} `;
    const result = await new ScriptRunner(sandbox, { scriptMs: 200 }).run(scripts, said(text), run);
    expect(result).toEqual({
      texts: [`${"yy".repeat(40)} !`],
      problems: [{ name: "slow", problem: "too_slow" }],
    });
    expect(off).toEqual(["slow too_slow"]);
  });

  test("leaves out a script that is invalid or makes a text too long", async () => {
    const off: string[] = [];
    const scripts = [
      active({ name: "invalid", find: "(" }, off),
      active({ name: "long", find: "/a/g", replace: "b".repeat(1_000) }, off),
      active({ name: "last", find: "/^a/", replace: "c" }, off),
    ];
    const result = await new ScriptRunner(sandbox).run(scripts, said("a".repeat(2_000)), run);
    expect(result.texts).toEqual([`c${"a".repeat(1_999)}`]);
    expect(result.problems).toEqual([
      { name: "invalid", problem: "invalid" },
      { name: "long", problem: "too_long" },
    ]);
    expect(off).toEqual(["long too_long"]);
  });

  test("runs on many texts, and leaves very long ones as they are", async () => {
    const texts = [...Array.from({ length: 40 }, (_, n) => `${n} `.repeat(10_000)), `a${"b".repeat(500_000)}`];
    const { texts: changed } = await new ScriptRunner(sandbox).run(
      [active({ find: "/^./", replace: "a" })],
      said(...texts),
      run,
    );
    expect(changed.map((text) => text.slice(0, 3))).toEqual([
      ...texts.slice(0, -1).map((text) => `a${text.slice(1, 3)}`),
      "abb",
    ]);
  });

  test("starts no process without a script that applies", async () => {
    await using unused = new Sandbox();
    await unused.close();
    const result = await new ScriptRunner(unused).run(
      [active({ isEnabled: false }), active({ isPromptOnly: true }), active({ placement: ["world_info"] })],
      said("a"),
      run,
    );
    expect(result).toEqual({ texts: ["a"], problems: [] });
  });
});
