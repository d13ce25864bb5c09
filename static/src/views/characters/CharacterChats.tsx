/** The chats with a character, each a link that resumes it. */
import { useState } from "preact/hooks";
import { Button } from "../../components/Button.tsx";
import { ErrorNote } from "../../components/Notice.tsx";
import type { CharacterPage } from "../../state/characters/character_page.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { ChatCard } from "../shell/ChatRow.tsx";

/** Chats that are shown at first. */
const FEW = 4;
/** Chats that are shown at most; the sidebar and the search have the rest. */
const MANY = 200;

/** The newest chats, or why there are none. Nothing for a character without chats. */
export function CharacterChats({ page }: { page: CharacterPage }) {
  const { chats } = useStore();
  const [isAll, setAll] = useState(false);
  const own = page.chats.value;
  if (chats.state.value === "failed" && chats.error.value) {
    return <ErrorNote title={texts.nav.failed} error={chats.error.value} onRetry={() => void chats.refresh()} />;
  }
  if (own.length === 0) return null;
  return (
    <section class="character-chats" aria-labelledby="character-chats">
      <h3 id="character-chats">{texts.nav.chats}</h3>
      <ul class="home-chats">
        {own.slice(0, isAll ? MANY : FEW).map((item) => <ChatCard key={item.id} item={item} />)}
      </ul>
      {!isAll && own.length > FEW && (
        <Button kind="quiet" onClick={() => setAll(true)}>{texts.characters.allChats(own.length)}</Button>
      )}
    </section>
  );
}
