/**
 * The mood image of the character that spoke last: next to the chat, or on phones in the header.
 *
 * Props of both: `chat`.
 */
import { useEffect, useState } from "preact/hooks";
import type { Expression } from "../../api/types.ts";
import { Portrait } from "../../components/Portrait.tsx";
import { chooseExpression } from "../../state/characters/moods.ts";
import { getContentText, splitReasoning } from "../../state/chat/message_text.ts";
import type { OpenChat } from "../../state/chat/open_chat.ts";
import { useStore } from "../../state/store.ts";

interface Shown {
  name: string;
  expression: Expression;
  path: string;
  version: string;
}

/** Next to the end of the chat, if there is space next to the column. */
export function ExpressionAside({ chat }: { chat: OpenChat }) {
  const shown = useExpression(chat);
  if (!shown) return null;
  return (
    <figure class="expression">
      <Portrait
        name={shown.name}
        path={shown.path}
        version={shown.version}
        isWhole
        widthPx={224}
        class="expression-image"
      />
      <figcaption class="visually-hidden">{`${shown.name}: ${shown.expression.name}`}</figcaption>
    </figure>
  );
}

/** Covers the portrait in the header. */
export function ExpressionFace({ chat }: { chat: OpenChat }) {
  const shown = useExpression(chat);
  if (!shown) return null;
  return (
    <Portrait
      name={shown.name}
      path={shown.path}
      version={shown.version}
      isWhole
      widthPx={44}
      class="expression-face"
    />
  );
}

/** Returns the expression of the last finished reply; undefined if its character has none. */
function useExpression(chat: OpenChat): Shown | undefined {
  const { api, people } = useStore();
  const running = chat.replies.run.value?.messageId;
  const last = chat.pages.items.value.findLast(({ role, id, content }) =>
    role === "assistant" && id !== running && getContentText(content) !== ""
  );
  const only = chat.options.value.participants?.[0]?.character_id;
  const id = last?.character_id ?? only;
  useEffect(() => {
    if (id) people.loadCharacter(id);
  }, [id]);
  const character = people.character(id);
  const version = character?.updated_at ?? "";
  const [listed, setListed] = useState<{ id: string; expressions: Expression[] }>();
  useEffect(() => {
    if (!character) return;
    let isWanted = true;
    // Without the list, there are no mood images.
    api.listExpressions(character.id).catch(() => []).then((expressions) => {
      if (isWanted) setListed({ id: character.id, expressions });
    });
    return () => {
      isWanted = false;
    };
  }, [character?.id, version]);
  if (!character || listed?.id !== character.id) return undefined;
  const text = last ? splitReasoning(getContentText(last.content)).text : "";
  const expression = chooseExpression(text, listed.expressions);
  return expression && {
    name: character.name,
    expression,
    version,
    path: `/api/characters/${encodeURIComponent(character.id)}/expressions/${expression.n}`,
  };
}
