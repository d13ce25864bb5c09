/** Search in the open chat. Ctrl or ⌘ F opens it; pressed again, the browser's own search opens. */
import { useLayoutEffect, useRef } from "preact/hooks";
import { IconButton } from "../../components/Button.tsx";
import type { OpenChat } from "../../state/chat/open_chat.ts";
import { texts } from "../../texts/texts.ts";

/** The search bar below the header. */
export function SearchBar({ chat }: { chat: OpenChat }) {
  const input = useRef<HTMLInputElement>(null);
  const { search } = chat;
  // At once, since the next key is typed into this field.
  useLayoutEffect(() => {
    const from = document.activeElement;
    input.current?.focus();
    return () => {
      if (from instanceof HTMLElement && from.isConnected) from.focus();
    };
  }, []);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    if (event.key === "Escape") search.close();
    else if (event.key === "Enter") void search.step(event.shiftKey ? -1 : 1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <search class="chat-search">
      <input
        ref={input}
        type="search"
        value={search.query.value}
        placeholder={texts.chat.search.placeholder}
        aria-label={texts.chat.search.label}
        onInput={(event) => search.type(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <span class="chat-search-count" role="status">{formatCount(chat)}</span>
      <IconButton
        icon="up"
        label={texts.chat.search.older}
        isDisabled={search.at.value + 1 >= search.hits.value.length && !search.hasMore.value}
        onClick={() => search.step(1)}
      />
      <IconButton
        icon="below"
        label={texts.chat.search.newer}
        isDisabled={search.at.value <= 0}
        onClick={() => search.step(-1)}
      />
      <IconButton icon="close" label={texts.close} onClick={() => search.close()} />
    </search>
  );
}

function formatCount({ search }: OpenChat): string {
  if (search.error.value) return search.error.value.message;
  const { length } = search.hits.value;
  if (length === 0) return search.state.value === "done" && !search.hasMore.value ? texts.chat.search.none : "";
  return texts.chat.search.place(search.at.value + 1, length, search.hasMore.value);
}
