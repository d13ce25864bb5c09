/** Files that were pasted, dropped or chosen: pictures stand beside the message, texts become a part of it. */
import { ApiError } from "../../../api/client.ts";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { isPicture } from "../../../state/chat/image_attachments.ts";
import { asFencedBlock, insertBlock, readTextFile } from "../../../state/chat/text_files.ts";
import { texts } from "../../../texts/texts.ts";

/**
 * Takes files into the composer of a chat.
 *
 * @param at Where the cursor stands in the text.
 * @param onProblem Called with the reason for every file that cannot be taken.
 */
export async function takeFiles(
  files: Iterable<File>,
  chat: OpenChat,
  at: number,
  onProblem: (problem: string) => void,
): Promise<void> {
  // Copied at once: the list of a drop is empty after its event.
  for (const file of [...files]) {
    if (isPicture(file)) {
      await chat.pictures.add(file).catch((thrown) =>
        onProblem(thrown instanceof ApiError ? thrown.message : texts.composer.badImage(file.name))
      );
      continue;
    }
    const found = await readTextFile(file);
    if ("text" in found) {
      chat.draft.type(insertBlock(chat.draft.text.peek(), at, asFencedBlock(file.name, found.text)));
      at = chat.draft.text.peek().length;
    } else if (found.problem === "too_large") onProblem(texts.composer.fileTooLarge(file.name));
    else onProblem(texts.composer.fileNotText(file.name));
  }
}
