/** Reasoning that a model wrote into its answer instead of a field of its own. */

const TAGS = "think|thinking|thought|reasoning";

/** Removes reasoning, also if the chat template already opened the tag or the answer ended before the tag closed. */
export function stripReasoning(text: string): string {
  return text
    .replace(new RegExp(`<(${TAGS})>[\\s\\S]*?</\\1>`, "gi"), "")
    .replace(new RegExp(`^[\\s\\S]*</(${TAGS})>`, "i"), "")
    .replace(new RegExp(`<(${TAGS})>[\\s\\S]*$`, "i"), "");
}
