/** Sections of a chat's options: the group, and the lorebooks with the preset. */
import type {
  CharacterItem,
  ChatOptions,
  LorebookItem,
  Participant,
  PresetItem,
  ReplyOrder,
} from "../../../api/types.ts";
import { useEffect, useState } from "preact/hooks";
import { asApiError } from "../../../api/client.ts";
import { greet } from "../../../api/conversations.ts";
import { IconButton } from "../../../components/Button.tsx";
import { TextField } from "../../../components/forms/Field.tsx";
import { Portrait } from "../../../components/Portrait.tsx";
import { Select, Switch } from "../../../components/forms/inputs.tsx";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { useStore } from "../../../state/store.ts";
import { texts } from "../../../texts/texts.ts";
import { toPortraitProps } from "../../characters/Avatars.tsx";
import { getSpeakerName } from "../composer/NextSpeakerBar.tsx";
import { lorebookApi, presetApi } from "../../../api/documents.ts";
import { ErrorNote } from "../../../components/Notice.tsx";
import { useResource } from "../../hooks.tsx";

/** Width of the portraits, in pixels. */
const WIDTH_PX = 32;
/** Most characters listed; typing narrows them. */
const MAX_FOUND = 6;
/** Pause in typing before the search starts, in milliseconds. */
const SEARCH_AFTER_MS = 250;

/** Every change is saved at once. */
export function GroupSection({ chat }: { chat: OpenChat }) {
  const store = useStore();
  const { participants, reply_order } = chat.options.value;
  const members = participants ?? [];
  const t = texts.chatOptions;
  const change = (changed: Participant[]) =>
    chat.change({ participants: changed }).catch((thrown) => store.report(thrown));
  return (
    <section aria-labelledby="options-cast">
      <h3 id="options-cast">{t.cast}</h3>
      {members.length === 0 ? <p class="hint">{t.nobody}</p> : (
        <ul class="cast-list">
          {members.map((one) => (
            <Member
              key={one.character_id}
              member={one}
              onMute={() =>
                void change(
                  members.map((each) => each === one ? { ...each, muted: !one.muted } : each),
                )}
              onLeave={() => void change(members.filter((each) => each !== one))}
              onGreet={members.length > 1
                ? () => void greet(store.api.client, chat.id, one.character_id).catch((thrown) => store.report(thrown))
                : undefined}
            />
          ))}
        </ul>
      )}
      <Joining members={members} onJoin={(id) => void change([...members, { character_id: id }])} />
      {members.length > 1 && (
        <Select<ReplyOrder>
          label={t.replyOrder}
          value={reply_order ?? "natural"}
          options={(["natural", "list", "manual"] as const).map((value) => ({ value, name: t.orders[value] }))}
          onChange={(order) => void chat.change({ reply_order: order }).catch((thrown) => store.report(thrown))}
        />
      )}
    </section>
  );
}

/** `onGreet`: absent for the only member. */
function Member({ member, onMute, onLeave, onGreet }: {
  member: Participant;
  onMute: () => void;
  onLeave: () => void;
  onGreet?: () => void;
}) {
  const store = useStore();
  const { character_id: id, muted = false } = member;
  useEffect(() => store.people.loadCharacter(id), [id]);
  const character = store.people.character(id);
  const name = getSpeakerName(store, id);
  const t = texts.chatOptions;
  return (
    <li class="cast-member">
      {character && <Portrait {...toPortraitProps(character)} widthPx={WIDTH_PX} class="cast-portrait" />}
      <span class="cast-name">
        {name}
        {muted && <span class="muted">{t.muted}</span>}
      </span>
      {onGreet && <IconButton icon="chat" label={t.greet(name)} onClick={onGreet} />}
      <IconButton icon="mute" label={t.mute(name)} isPressed={muted} onClick={onMute} />
      <IconButton icon="close" label={t.leave(name)} onClick={onLeave} />
    </li>
  );
}

/** Found by name while typing. */
function Joining({ members, onJoin }: { members: readonly Participant[]; onJoin: (id: string) => void }) {
  const store = useStore();
  const [typed, setTyped] = useState("");
  const [found, setFound] = useState<CharacterItem[]>();
  const query = typed.trim();
  useEffect(() => {
    setFound(undefined);
    if (query === "") return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      const filter = { q: query, tag: "", sort: "name" as const };
      store.api.listCharacters(filter, MAX_FOUND + members.length, undefined, abort.signal)
        .then(({ items }) => setFound(items.filter(({ unreadable }) => !unreadable)), (thrown) => {
          if (!abort.signal.aborted) store.report(asApiError(thrown));
        });
    }, SEARCH_AFTER_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [query]);
  const others = found?.filter(({ id }) => !members.some(({ character_id }) => character_id === id)).slice(
    0,
    MAX_FOUND,
  );
  const t = texts.chatOptions;
  return (
    <div>
      <TextField label={t.add} hint={t.castHint} type="search" value={typed} onInput={setTyped} />
      {others && others.length > 0 && (
        <ul class="cast-found" aria-label={t.found}>
          {others.map((character) => (
            <li key={character.id}>
              <button
                type="button"
                class="cast-row"
                aria-label={t.join(character.name)}
                onClick={() => {
                  setTyped("");
                  onJoin(character.id);
                }}
              >
                <Portrait {...toPortraitProps(character)} widthPx={WIDTH_PX} class="cast-portrait" />
                <span class="cast-name">{character.name}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
      {others?.length === 0 && <p class="hint" role="status">{t.none}</p>}
    </div>
  );
}

interface Lists {
  books: LorebookItem[];
  presets: PresetItem[];
}

/** Stands for the preset of the model. */
const BY_MODEL = "";

/** The choices load when this is opened. */
export function LorebooksSection({ chat }: { chat: OpenChat }) {
  const store = useStore();
  const read = async (): Promise<Lists> => {
    const { client } = store.api;
    const [books, presets] = await Promise.all([lorebookApi(client).list(), presetApi(client).list()]);
    return { books, presets };
  };
  const { value: lists, error, again } = useResource(read, "lorebook", "preset");
  const t = texts.chatOptions;
  return (
    <section aria-labelledby="options-world">
      <h3 id="options-world">{t.world}</h3>
      {!lists && !error && <p role="status">{texts.loading}</p>}
      {error && <ErrorNote title={t.booksFailed} error={error} onRetry={again} />}
      {lists && <Choices chat={chat} lists={lists} />}
    </section>
  );
}

function Choices({ chat, lists: { books, presets } }: { chat: OpenChat; lists: Lists }) {
  const store = useStore();
  const { preset_id, lorebook_ids } = chat.options.value;
  const chosen = lorebook_ids ?? [];
  const change = (options: ChatOptions) => void chat.change(options).catch((thrown) => store.report(thrown));
  // Global lorebooks apply anyway, and those of a character or persona come with them.
  const shown = books.filter(({ id, scope, enabled }) => chosen.includes(id) || (scope === "chat" && enabled));
  const t = texts.chatOptions;
  const setBook = (id: string, isOn: boolean) => {
    const ids = isOn ? [...chosen, id] : chosen.filter((each) => each !== id);
    change({ lorebook_ids: ids.length === 0 ? null : ids });
  };
  return (
    <>
      <Select
        label={t.preset}
        value={preset_id ?? BY_MODEL}
        options={[{ value: BY_MODEL, name: t.presetAuto }, ...presets.map(({ id, name }) => ({ value: id, name }))]}
        onChange={(id) => change({ preset_id: id === BY_MODEL ? null : id })}
      />
      <div role="group" aria-label={t.lorebooks} class="world-books">
        <p class="label">{t.lorebooks}</p>
        {shown.length === 0 && <p class="hint">{t.noLorebooks}</p>}
        {shown.map(({ id, name, entry_count }) => (
          <Switch
            key={id}
            label={name}
            hint={t.entries(entry_count)}
            isOn={chosen.includes(id)}
            onChange={(isOn) => setBook(id, isOn)}
          />
        ))}
      </div>
    </>
  );
}
