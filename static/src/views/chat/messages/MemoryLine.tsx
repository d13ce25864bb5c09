/** The line in a chat above the oldest message that the last reply's prompt contained. */
import { useState } from "preact/hooks";
import { Button } from "../../../components/Button.tsx";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { useStore } from "../../../state/store.ts";
import { texts } from "../../../texts/texts.ts";
import { openChatPanel } from "../panels/panels.tsx";

/** Says what stands for the messages above: the summary, or nothing. */
export function MemoryLine({ chat }: { chat: OpenChat }) {
  const store = useStore();
  const [isOpen, setOpen] = useState(false);
  const t = texts.memoryLine;
  const summary = chat.options.value.summary?.text.trim() ?? "";
  return (
    <div class="memory-line" role="note" aria-label={t.label}>
      <p>
        <strong>{t.label}</strong> {summary === "" ? t.nothing : t.summarized}
      </p>
      <div class="actions-row">
        {summary !== "" && (
          <Button kind="quiet" isExpanded={isOpen} onClick={() => setOpen(!isOpen)}>{t.summary}</Button>
        )}
        <Button kind="quiet" onClick={() => openChatPanel(store, "options")}>{t.edit}</Button>
      </div>
      {isOpen && <blockquote>{summary}</blockquote>}
    </div>
  );
}
