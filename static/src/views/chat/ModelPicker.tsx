/** Selects connection and model: of this chat, of a retry, or of one version of a reply. */
import { foldForSearch } from "../../../../services/json/search_fold.ts";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Connection } from "../../api/types.ts";
import { IconButton } from "../../components/Button.tsx";
import { VisibleText } from "../../components/content/VisibleText.tsx";
import { useMedia } from "../../components/hooks.ts";
import { Sheet } from "../../components/overlays/Dialog.tsx";
import { Select } from "../../components/forms/inputs.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Notice } from "../../components/Notice.tsx";
import { isSameModel, type ModelChoice } from "../../state/app/device.ts";
import type { OpenChat, PickerPurpose } from "../../state/chat/open_chat.ts";
import { isSameModelName } from "../../state/connections/connection_state.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { toVisibleText } from "../../texts/visible_text.ts";
import { ConnectionStateText } from "../connections/ConnectionStateText.tsx";

/** Maximum number of names in the list. Typing narrows it. */
const MAX_SHOWN = 100;

/** Value that stands for the active connection. */
const EVERYWHERE = "";

/** A model of the list. An empty name is the connection's default. */
interface ModelOption extends ModelChoice {
  /** Shown in the lists over all connections. */
  connectionName?: string;
}

/** Selects both. Choosing a model applies it. */
export function ModelPicker(
  { chat, purpose, onClose }: { chat: OpenChat; purpose: PickerPurpose; onClose: () => void },
) {
  const store = useStore();
  const { connections, device } = store;
  const { connection_id, model } = chat.options.value;
  // On touch screens, focus would open the keyboard over the list.
  const isTouch = useMedia("(pointer: coarse)");
  const isVersion = purpose.kind === "version";
  const [filter, setFilter] = useState("");
  // The connection of one version is no option of the chat.
  const [ofVersion, setOfVersion] = useState(connection_id ?? EVERYWHERE);
  const chosenId = isVersion ? ofVersion : connection_id ?? EVERYWHERE;
  const connection = connections.find(chosenId);
  const check = connection && connections.checks.value.get(connection.id);
  useEffect(() => {
    if (connection && !check) void connections.check(connection);
    // While the picker is open, a call to the model discards the test result.
  }, [connection?.id, check === undefined]);
  const result = check?.kind === "done" ? check.result : undefined;
  const problem = check?.kind === "failed" ? check.error.message : result?.error;
  const t = texts.modelPicker;

  const apply = async ({ connectionId, model }: ModelChoice) => {
    if (isVersion) {
      return chat.replies.regenerate(purpose.messageId, { connection_id: connectionId, model: model || undefined });
    }
    // The active connection stays a default, so that the chat follows it.
    const isNamed = connectionId !== connections.active.peek()?.id || chat.options.peek().connection_id != null;
    await chat.change({ model: model || null, ...(isNamed && { connection_id: connectionId }) });
    if (purpose.kind === "retry") chat.replies.regenerate(purpose.messageId);
  };
  const choose = (choice: ModelChoice) => {
    if (choice.model !== "") device.rememberModel(choice);
    apply(choice).catch((thrown) => store.report(thrown));
    onClose();
  };
  const changeConnection = (id: string) => {
    if (isVersion) return setOfVersion(id);
    chat.change({ connection_id: id === EVERYWHERE ? null : id, model: null }).catch((thrown) => store.report(thrown));
  };

  const query = filter.trim();
  const isMatch = (name: string) => foldForSearch(name).includes(foldForSearch(query));
  const names = (result?.models ?? []).filter(isMatch);
  const named = (choices: readonly ModelChoice[]) => withConnections(choices, connections.items.value, isMatch);
  const favorites = named(device.favoriteModels.value);
  const recent = named(device.recentModels.value).filter((each) => !favorites.some((one) => isSameModel(one, each)));
  const row = (option: ModelOption, name = option.model) => (
    <ModelRow
      key={`${option.connectionId} ${option.model}`}
      option={option}
      name={name}
      isChosen={!isVersion && connection?.id === option.connectionId &&
        isSameModelName(model ?? "", option.model, connection.kind)}
      onChoose={() => choose(option)}
    />
  );
  return (
    <Sheet title={getTitle(purpose)} onClose={onClose}>
      <div class="model-picker">
        <TextField label={t.filter} value={filter} onInput={setFilter} type="search" hasFocus={!isTouch} />
        {favorites.length > 0 && <ModelGroup title={t.favorites}>{favorites.map((option) => row(option))}</ModelGroup>}
        {recent.length > 0 && <ModelGroup title={t.recent}>{recent.map((option) => row(option))}</ModelGroup>}
        {connections.items.value.length > 1 && (
          <Select
            label={t.connection}
            value={chosenId}
            options={[
              {
                value: EVERYWHERE,
                name: t.everywhere(toVisibleText(connections.active.value?.name ?? texts.connection.none)),
              },
              ...connections.items.value.map(({ id, name }) => ({ value: id, name: toVisibleText(name) })),
            ]}
            onChange={changeConnection}
          />
        )}
        {connection && <ConnectionStateText connection={connection} />}
        <ul class="model-list" aria-label={t.models}>
          {connection && row(
            { connectionId: connection.id, model: "" },
            t.standard(connection.model || connection.resolved_model || result?.models[0]),
          )}
          {connection && names.slice(0, MAX_SHOWN).map((name) => row({ connectionId: connection.id, model: name }))}
          {connection && query !== "" && !names.includes(query) &&
            row({ connectionId: connection.id, model: query }, t.own(query))}
        </ul>
        {names.length > MAX_SHOWN && <p class="hint">{t.more(names.length - MAX_SHOWN)}</p>}
        {check?.kind === "running" && <p class="hint" role="status">{texts.loading}</p>}
        {problem && <Notice tone="warning" title={t.noList}>{problem}</Notice>}
      </div>
    </Sheet>
  );
}

function getTitle({ kind }: PickerPurpose): string {
  const { title, retryTitle, versionTitle } = texts.modelPicker;
  return kind === "chat" ? title : kind === "retry" ? retryTitle : versionTitle;
}

/** Omits models of deleted connections, and models that don't match. */
function withConnections(
  choices: readonly ModelChoice[],
  connections: readonly Connection[],
  isMatch: (name: string) => boolean,
): ModelOption[] {
  return choices.flatMap((choice) => {
    const connection = connections.find(({ id }) => id === choice.connectionId);
    return connection && isMatch(choice.model) ? [{ ...choice, connectionName: connection.name }] : [];
  });
}

function ModelGroup({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section>
      <h3 class="model-group">{title}</h3>
      <ul aria-label={title}>{children}</ul>
    </section>
  );
}

function ModelRow(
  { option, name, isChosen, onChoose }: {
    option: ModelOption;
    name: string;
    isChosen: boolean;
    onChoose: () => void;
  },
) {
  const { device } = useStore();
  const isFavorite = device.favoriteModels.value.some((each) => isSameModel(each, option));
  const { connectionId, model, connectionName } = option;
  return (
    <li class="model-line">
      <button type="button" class="model-row" aria-pressed={isChosen} onClick={onChoose}>
        <VisibleText text={name} /> {connectionName && (
          <span class="model-connection">
            <VisibleText text={connectionName} />
          </span>
        )}
      </button>
      {model !== "" && (
        <IconButton
          icon="star"
          label={isFavorite ? texts.modelPicker.unfavorite(model) : texts.modelPicker.favorite(model)}
          isPressed={isFavorite}
          onClick={() => device.toggleFavorite({ connectionId, model })}
        />
      )}
    </li>
  );
}
