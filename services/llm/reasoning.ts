/** Thoughts that a model wrote into its answer. */

/** Takes out what a model thought, also where the template had opened its thoughts or the answer ended inside them. */
export function withoutThoughts(text: string): string {
  return text
    .replace(/<(think|thinking|thought|reasoning)>[\s\S]*?<\/\1>/gi, "")
    .replace(/^[\s\S]*<\/(think|thinking|thought|reasoning)>/i, "")
    .replace(/<(think|thinking|thought|reasoning)>[\s\S]*$/i, "");
}
