/** The summary of a chat in chapters, each with the messages that it covers. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Chapter, ChatOptions } from "../../../api/types.ts";
import { Button } from "../../../components/Button.tsx";
import { TextField } from "../../../components/forms/Field.tsx";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { texts } from "../../../texts/texts.ts";

/** An edited chapter isn't written again by itself. */
export function ChaptersSection({ chat, chapters, onChange }: {
  chat: OpenChat;
  chapters: readonly Chapter[];
  onChange: (change: (current: ChatOptions) => ChatOptions) => void;
}) {
  /** Found again by the last message it covers, because others may be added meanwhile. */
  const write = (upTo: string, text: string) =>
    onChange(({ chapters: current }) => ({
      chapters: (current ?? []).flatMap((chapter) =>
        chapter.up_to_message_id !== upTo ? [chapter] : text.trim() === "" ? [] : [{ ...chapter, text }]
      ),
    }));
  return (
    <ol class="chapter-list">
      {chapters.map((chapter, n) => (
        <ChapterField key={chapter.up_to_message_id} {...{ chat, chapter, n }} onWrite={write} />
      ))}
    </ol>
  );
}

function ChapterField({ chat, chapter, n, onWrite }: {
  chat: OpenChat;
  chapter: Chapter;
  n: number;
  onWrite: (upTo: string, text: string) => void;
}) {
  const [text, setText] = useState(chapter.text);
  const box = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (!box.current?.contains(document.activeElement)) setText(chapter.text);
  }, [chapter.text]);
  const t = texts.memory.chapters;
  const { from_message_id: from, up_to_message_id: upTo } = chapter;
  const link = (id: string) => `/c/${encodeURIComponent(chat.id)}#${encodeURIComponent(id)}`;
  return (
    <li ref={box}>
      <TextField
        label={t.title(n + 1)}
        hint={
          <>
            {from && (
              <>
                <a href={link(from)}>{t.first}</a>
                {" – "}
              </>
            )}
            <a href={link(upTo)}>{t.last}</a>
            {chapter.edited && ` · ${t.edited}`}
          </>
        }
        rows={4}
        value={text}
        onInput={(typed) => {
          setText(typed);
          if (typed.trim() !== "") onWrite(upTo, typed);
        }}
      />
      <Button kind="quiet" icon="trash" label={t.removeOne(n + 1)} onClick={() => onWrite(upTo, "")}>{t.remove}</Button>
    </li>
  );
}
