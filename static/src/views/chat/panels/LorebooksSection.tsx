/** The lorebooks of one chat, and its pinned preset. */
import type { ChatOptions, LorebookItem, PresetItem } from "../../../api/types.ts";
import { useEffect, useState } from "preact/hooks";
import { ApiError, asApiError } from "../../../api/client.ts";
import { lorebookApi, presetApi } from "../../../api/documents.ts";
import { ErrorNote } from "../../../components/Notice.tsx";
import { Select, Switch } from "../../../components/forms/inputs.tsx";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { useStore } from "../../../state/store.ts";
import { texts } from "../../../texts/texts.ts";

interface Lists {
  books: LorebookItem[];
  presets: PresetItem[];
}

/** Means: the preset for the model. */
const BY_MODEL = "";

/** The choices load when this is opened. */
export function LorebooksSection({ chat }: { chat: OpenChat }) {
  const store = useStore();
  const [lists, setLists] = useState<Lists | ApiError>();
  const [round, setRound] = useState(0);
  useEffect(() => {
    let isHere = true;
    const { client } = store.api;
    Promise.all([lorebookApi(client).list(), presetApi(client).list()]).then(
      ([books, presets]) => isHere && setLists({ books, presets }),
      (thrown) => isHere && setLists(asApiError(thrown)),
    );
    return () => {
      isHere = false;
    };
  }, [round]);
  const t = texts.chatOptions;
  return (
    <section aria-labelledby="options-world">
      <h3 id="options-world">{t.world}</h3>
      {lists === undefined && <p role="status">{texts.loading}</p>}
      {lists instanceof ApiError && (
        <ErrorNote
          title={t.booksFailed}
          error={lists}
          onRetry={() => setRound(round + 1)}
        />
      )}
      {lists !== undefined && !(lists instanceof ApiError) && <Choices chat={chat} lists={lists} />}
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
