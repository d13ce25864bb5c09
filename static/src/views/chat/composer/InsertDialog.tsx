/** Inserts prompts and resources of tool servers, and prompt templates, into a message. */
import { useEffect, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../../api/client.ts";
import { listServerTexts, type ServerText, toolTextsApi } from "../../../api/tool_texts.ts";
import { Drafted, useFormDraft } from "../../../components/forms/Drafted.tsx";
import { Button } from "../../../components/Button.tsx";
import { TextField } from "../../../components/forms/Field.tsx";
import { ErrorNote } from "../../../components/Notice.tsx";
import { List, ListRow } from "../../../components/lists/List.tsx";
import { Dialog } from "../../../components/overlays/Dialog.tsx";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { useStore } from "../../../state/store.ts";
import { texts } from "../../../texts/texts.ts";
import { addFiles } from "./add_files.ts";
import type { PromptTemplate } from "../../../api/types.ts";
import { fillVariables, listVariables } from "../../../state/chat/slash_commands.ts";

/** Loads the prompts and resources of all servers. */
export function InsertDialog({ chat, onClose }: { chat: OpenChat; onClose: () => void }) {
  const store = useStore();
  const t = texts.insertText;
  const [found, setFound] = useState<ServerText[]>();
  const [error, setError] = useState<ApiError>();
  const [chosen, setChosen] = useState<ServerText>();
  const [values, setValues] = useState<Record<string, string>>({});
  const [isBusy, setBusy] = useState(false);
  const draft = useFormDraft(
    chosen && !chat.isTemporary ? `prompt:${chosen.serverId}:${chosen.id}` : undefined,
  );
  const load = () => {
    setError(undefined);
    listServerTexts(store.api.client).then(setFound, (thrown) => setError(asApiError(thrown)));
  };
  useEffect(load, []);
  const insert = async (item: ServerText) => {
    setBusy(true);
    setError(undefined);
    try {
      const api = toolTextsApi(store.api.client, item.serverId);
      draft.clear();
      if (item.kind === "prompt") {
        const { text } = await api.getPrompt(item.id, values);
        const typed = chat.draft.text.peek().trimEnd();
        chat.draft.type(typed === "" ? text : `${typed}\n\n${text}`);
      } else {
        const { name, content_type: type, text } = await api.readResource(item.id);
        const file = new File([text], /\.\w+$/.test(name) ? name : `${name}.txt`, { type });
        const problems: string[] = [];
        await addFiles([file], chat, chat.draft.text.peek().length, (problem) => problems.push(problem));
        for (const problem of problems) store.toasts.show(problem, { isError: true });
      }
      onClose();
    } catch (thrown) {
      setError(asApiError(thrown));
      setBusy(false);
    }
  };
  const choose = (item: ServerText) => {
    if (item.arguments.length === 0) return void insert(item);
    setValues({});
    setChosen(item);
  };
  const isComplete = chosen?.arguments.every(({ name, required }) => !required || values[name]?.trim());
  return (
    <Dialog
      title={chosen?.title ?? t.title}
      onClose={onClose}
      actions={chosen && (
        <>
          <Button onClick={() => setChosen(undefined)}>{t.back}</Button>
          <Button kind="primary" isBusy={isBusy} isDisabled={!isComplete} onClick={() => void insert(chosen)}>
            {t.insert}
          </Button>
        </>
      )}
    >
      {error && <ErrorNote title={t.failed} error={error} onRetry={found ? undefined : load} />}
      {!found && !error && <p class="muted" role="status">{texts.loading}</p>}
      {found?.length === 0 && <p class="muted">{t.none}</p>}
      {chosen
        ? (
          <Drafted key={chosen.id} draft={draft}>
            {chosen.arguments.map(({ name, description, required }) => (
              <TextField
                key={name}
                label={required ? name : t.optional(name)}
                hint={description}
                value={values[name] ?? ""}
                onInput={(value) => setValues((before) => ({ ...before, [name]: value }))}
              />
            ))}
          </Drafted>
        )
        : found && found.length > 0 && (
          <List label={t.title}>
            {found.map((item) => (
              <ListRow
                key={`${item.serverId} ${item.kind} ${item.id}`}
                title={item.title}
                text={[item.kind === "prompt" ? t.prompt : t.resource, item.serverName, item.description]
                  .filter(Boolean).join(" · ")}
                onClick={() => choose(item)}
              />
            ))}
          </List>
        )}
    </Dialog>
  );
}

/** One field for each variable. Variables without a value stay in the text. */
export function TemplateDialog(
  { template, onInsert, onClose }: {
    template: PromptTemplate;
    onInsert: (text: string) => void;
    onClose: () => void;
  },
) {
  const [values, setValues] = useState<Record<string, string>>({});
  const draft = useFormDraft(`template values:${template.name}`);
  const insert = () => {
    draft.clear();
    onInsert(fillVariables(template.text, values));
  };
  return (
    <Dialog
      title={template.name}
      onClose={onClose}
      actions={<Button kind="primary" onClick={insert}>{texts.promptTemplates.insert}</Button>}
    >
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          insert();
        }}
      >
        <Drafted draft={draft}>
          {listVariables(template.text).map((name, index) => (
            <TextField
              key={name}
              label={name}
              value={values[name] ?? ""}
              hasFocus={index === 0}
              onInput={(value) => setValues((before) => ({ ...before, [name]: value }))}
            />
          ))}
        </Drafted>
        <button type="submit" hidden />
      </form>
    </Dialog>
  );
}
