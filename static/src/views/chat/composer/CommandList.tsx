/** The slash commands that match the typed text. */
import { useLayoutEffect, useRef } from "preact/hooks";
import type { CommandName } from "../../../state/chat/slash_commands.ts";
import { texts } from "../../../texts/texts.ts";
import { LIST_ID, optionId } from "./command_actions.ts";

/** The focus stays in the composer, whose arrow keys move through the list. */
export function CommandList(
  { names, at, onChoose }: { names: readonly CommandName[]; at: number; onChoose: (name: CommandName) => void },
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
      {names.map((name, index) => (
        <li
          key={name}
          id={optionId(name)}
          role="option"
          aria-selected={index === at}
          // Before the click, so that the composer keeps the focus.
          onPointerDown={(event) => event.preventDefault()}
          onClick={() => onChoose(name)}
        >
          <code>/{name}</code>
          <span>{texts.slashCommands[name]}</span>
        </li>
      ))}
    </ul>
  );
}
