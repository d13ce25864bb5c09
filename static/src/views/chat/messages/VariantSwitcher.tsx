/** The versions of a message: of a reply its texts, of a user's message also what followed each. */
import type { Message } from "../../../api/types.ts";
import { IconButton } from "../../../components/Button.tsx";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { texts } from "../../../texts/texts.ts";

/** ‹ 2/3 ›, where there is more than one. */
export function Variants({ chat, message }: { chat: OpenChat; message: Message }) {
  const count = message.variant_count ?? 1;
  const at = message.active_variant ?? 0;
  if (count < 2) return null;
  const isBusy = chat.isRunning.value;
  const step = (by: 1 | -1) => void chat.actions.switchVariant(message.id, by);
  return (
    <span class="variants">
      <IconButton
        icon="left"
        label={texts.chat.previousVariant}
        isDisabled={isBusy || at <= 0}
        onClick={() => step(-1)}
      />
      <span role="status" aria-label={texts.chat.variant(at + 1, count)}>{at + 1}/{count}</span>
      <IconButton
        icon="right"
        label={texts.chat.nextVariant}
        isDisabled={isBusy || at + 1 >= count}
        onClick={() => step(1)}
      />
    </span>
  );
}
