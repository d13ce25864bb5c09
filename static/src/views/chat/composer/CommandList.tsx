/** The slash commands and prompt templates that match the typed text. */
import { useLayoutEffect, useRef } from "preact/hooks";
import { toTemplateSnippet } from "../../../state/chat/slash_commands.ts";
import { texts } from "../../../texts/texts.ts";
import { LIST_ID, type Listed, toOptionId } from "../chat_commands.ts";

/** The focus stays in the composer, whose arrow keys move through the list. */
export function CommandList(
  { items, at, onChoose }: { items: readonly Listed[]; at: number; onChoose: (item: Listed) => void },
) {
  const list = useRef<HTMLUListElement>(null);
  useLayoutEffect(() => list.current?.children[at]?.scrollIntoView({ block: "nearest" }), [at]);
  return (
    <ul
      ref={list}
      class="command-list"
      id={LIST_ID}
      role="listbox"
      aria-label={texts.composer.commands}
      // It scrolls on phones, and scroll containers must be reachable by keyboard.
      tabIndex={0}
    >
      {items.map((item, index) => (
        <li
          key={toOptionId(item)}
          id={toOptionId(item)}
          role="option"
          aria-selected={index === at}
          // Before the click, so that the composer keeps the focus.
          onPointerDown={(event) => event.preventDefault()}
          onClick={() => onChoose(item)}
        >
          <code>/{item.name}</code>
          <span>
            {item.kind === "command" ? texts.slashCommands[item.name] : toTemplateSnippet(item.template.text)}
          </span>
        </li>
      ))}
    </ul>
  );
}
