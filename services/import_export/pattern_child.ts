/** Applies an edit of a text in the sandbox: a pattern from a file can take forever. */
import { serveSandbox } from "../platform/sandbox/child.ts";
import { applyPatternEdit, type PatternEdit } from "./python_pattern.ts";

/** One edit. */
export type PatternOrder = PatternEdit & { text: string };

await serveSandbox("pattern_child", {
  run(value) {
    const { text, ...edit } = value as PatternOrder;
    return { value: applyPatternEdit(text, edit) ?? null };
  },
});
