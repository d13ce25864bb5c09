/** The start page: the last chats, characters, conversation starters, and running tasks. */
import { useEffect } from "preact/hooks";
import type { CharacterItem } from "../../api/types.ts";
import { Button, LinkButton } from "../../components/Button.tsx";
import { Avatars } from "../characters/Avatars.tsx";
import { Icon } from "../../components/Icon.tsx";
import type { OpenChat } from "../../state/chat/open_chat.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { useResource } from "../hooks.tsx";
import { ChatCard } from "../shell/ChatRow.tsx";

/** Maximum number of rows and of tiles. */
const SHOWN = { chats: 4, characters: 6 };

/** The page of a new chat above its composer. */
export function Home({ chat }: { chat: OpenChat }) {
  const { chats } = useStore();
  const t = texts.home;
  const last = chats.shown.value.slice(0, SHOWN.chats);
  return (
    <div class="home">
      <h2>{texts.chat.emptyTitle}</h2>
      <Running />
      {last.length > 0 && (
        <section aria-labelledby="home-continue">
          <h3 id="home-continue">{t.continue}</h3>
          <ul class="home-chats">{last.map((item) => <ChatCard key={item.id} item={item} />)}</ul>
        </section>
      )}
      <Characters />
      <Starters chat={chat} />
    </div>
  );
}

/** Favorites and characters of the last chats, filled up with the last changed ones. */
function Characters() {
  const { api, chats, people } = useStore();
  const t = texts.home;
  const list = async (favorite: boolean) =>
    toIds((await api.listCharacters({ q: "", tag: "", favorite, sort: "updated" }, SHOWN.characters)).items);
  const read = async () => {
    const [favorites, changed] = await Promise.all([list(true), list(false)]);
    return { favorites, changed };
  };
  // After a failure, those of the last chats are shown.
  const { value: others } = useResource(read, "character", "characters");
  const recent = chats.shown.value.flatMap((item) => item.character_ids);
  const ids = [...new Set([...others?.favorites ?? [], ...recent, ...others?.changed ?? []])].slice(
    0,
    SHOWN.characters * 2,
  );
  useEffect(() => people.loadListItems(ids), [ids.join()]);
  const shown = ids.flatMap((id) => people.getListItem(id) ?? []).slice(0, SHOWN.characters);
  if (shown.length === 0) {
    if (others === undefined) return null;
    return (
      <section aria-labelledby="home-characters">
        <h3 id="home-characters">{texts.nav.characters}</h3>
        <LinkButton href="/characters" icon="plus">{t.addCharacter}</LinkButton>
      </section>
    );
  }
  return (
    <section aria-labelledby="home-characters">
      <h3 id="home-characters">
        {texts.nav.characters} <a href="/characters">{t.all}</a>
      </h3>
      <ul class="home-characters">
        {shown.map(({ id, name }) => (
          <li key={id}>
            <a href={`/characters/${encodeURIComponent(id)}`}>
              <Avatars ids={[id]} widthPx={64} />
              <span>{name}</span>
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

function toIds(items: readonly CharacterItem[]): string[] {
  return items.filter(({ unreadable }) => !unreadable).map(({ id }) => id);
}

/** Each puts the beginning of a message into the composer, before what is typed. */
function Starters({ chat }: { chat: OpenChat }) {
  const { toasts } = useStore();
  const start = (text: string) => {
    const typed = chat.draft.text.peek();
    chat.draft.type(text + typed);
    document.querySelector<HTMLTextAreaElement>(".composer textarea")?.focus();
    if (typed === "") return;
    const undo = () => {
      // What was typed since stays.
      const now = chat.draft.text.peek();
      if (now.startsWith(text)) chat.draft.type(now.slice(text.length));
    };
    toasts.show(texts.home.inserted, { action: { label: texts.undo, run: undo } });
  };
  return (
    <section aria-labelledby="home-starters">
      <h3 id="home-starters">{texts.home.starters}</h3>
      <ul class="home-starters">
        {texts.home.starterTexts.map(({ label, text }) => (
          <li key={label}>
            <Button onClick={() => start(text)}>{label}</Button>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Renders nothing while nothing runs. */
function Running() {
  const { activity, chats } = useStore();
  const count = activity.count.value;
  if (count === 0) return null;
  const names = [
    ...activity.runningJobs.value.map(({ title }) => title),
    ...chats.replies.value.length > 0 ? [texts.home.replies(chats.replies.value.length)] : [],
  ];
  return (
    <a class="home-running" href="/activity">
      <Icon name="activity" />
      <span class="chat-title">{names.join(" · ")}</span>
      <span>{texts.home.show}</span>
    </a>
  );
}
