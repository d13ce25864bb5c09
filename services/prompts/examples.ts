/** The example dialogue of a card: conversations parted by `<START>`. */

/** Gives the example conversations, without the marks between them. */
export function exampleDialogues(text: string): string[] {
  return text.replaceAll("\r", "").split(/^[ \t]*<START>[ \t]*$|<START>/gim).map((dialogue) => dialogue.trim())
    .filter((dialogue) => dialogue !== "");
}
