/** The options of a chat: sampling, prompts, group, lorebooks, chapters. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Chapter, ChatOptions } from "../../../api/types.ts";
import { Drafted, useFormDraft } from "../../../components/forms/Drafted.tsx";
import { Button } from "../../../components/Button.tsx";
import { DraftContext } from "../../../components/forms/draft_field.ts";
import { TextField } from "../../../components/forms/Field.tsx";
import { Select, Switch } from "../../../components/forms/inputs.tsx";
import type { FormDraft } from "../../../state/app/form_draft.ts";
import { NEW_CHAT_OPTIONS } from "../../../state/app/form_draft_store.ts";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { useStore } from "../../../state/store.ts";
import { texts } from "../../../texts/texts.ts";
import { ChatUsage } from "../../usage/ChatUsage.tsx";
import { AlwaysAttached } from "../../documents/AlwaysAttached.tsx";
import { BackgroundField } from "../ChatBackground.tsx";
import { GroupSection, LorebooksSection } from "./OptionsSections.tsx";
import { openChatPanel } from "./panels.tsx";
import { SamplingSection } from "./SamplingSection.tsx";

/** Pause in typing before a change is saved, in milliseconds. */
const SAVE_AFTER_MS = 500;

/** Default depth of a note: before the last messages, where models heed it. */
const NOTE_DEPTH = 4;

/** Saves a change after a pause. A function gets the options with all changes so far. */
export type Change = (options: ChatOptions | ((current: ChatOptions) => ChatOptions)) => void;

/** The panel; every change is saved automatically. */
export function OptionsPanel({ chat, anchor }: { chat: OpenChat; anchor?: string }) {
  const store = useStore();
  useEffect(() => {
    if (anchor !== undefined) document.getElementById(anchor)?.scrollIntoView({ block: "start" });
  }, [anchor]);
  const draft = useFormDraft(chat.isTemporary ? undefined : chat.isNew ? NEW_CHAT_OPTIONS : `options:${chat.id}`);
  const change = useSaving(chat, draft);
  const options = chat.options.value;
  const t = texts.chatOptions.options;
  return (
    <div class="options-panel">
      <section aria-labelledby="options-told">
        <h3 id="options-told">{t.prompt}</h3>
        <Drafted draft={draft}>
          <Instructions options={options} onChange={change} />
          {!chat.isTemporary && <Note options={options} onChange={change} />}
        </Drafted>
        {!chat.isTemporary && !chat.isNew && (
          <div class="actions-row">
            <Button icon="eye" onClick={() => openChatPanel(store, "preview")}>{texts.chatOptions.preview.open}</Button>
            <Button icon="history" onClick={() => openChatPanel(store, "history")}>
              {texts.chatOptions.history.open}
            </Button>
          </div>
        )}
      </section>
      {!chat.isTemporary && (
        <>
          <GroupSection chat={chat} />
          <LorebooksSection chat={chat} />
          <DocumentsSection chat={chat} />
          <ToolsSection chat={chat} />
          <DraftContext.Provider value={draft}>
            <SummarySection chat={chat} onChange={change} />
          </DraftContext.Provider>
          <section aria-labelledby="options-background">
            <h3 id="options-background">{texts.background.title}</h3>
            <BackgroundField
              hasDefault
              value={options.background}
              onChange={(background) => chat.change({ background })}
            />
          </section>
        </>
      )}
      <section aria-labelledby="options-sampling">
        <h3 id="options-sampling">{t.sampling}</h3>
        <p class="hint">{t.samplingHint}</p>
        <DraftContext.Provider value={draft}>
          <SamplingSection chat={chat} onChange={change} />
        </DraftContext.Provider>
      </section>
      {!chat.isTemporary && !chat.isNew && <ChatUsage id={chat.id} />}
    </div>
  );
}

/** Collects changes, and saves them when typing pauses or the panel closes. */
function useSaving(chat: OpenChat, draft: FormDraft): Change {
  const store = useStore();
  const waiting = useRef<Parameters<Change>[0][]>([]);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const save = () => {
    clearTimeout(timer.current);
    // Only now, so that what was changed elsewhere in the meantime stays.
    const before = chat.options.peek();
    const options = waiting.current.reduce<ChatOptions>((sum, change) => ({
      ...sum,
      ...(typeof change === "function" ? change({ ...before, ...sum }) : change),
    }), {});
    waiting.current = [];
    if (Object.keys(options).length === 0) return;
    chat.change(options).then(
      () => !chat.isNew && waiting.current.length === 0 && draft.settle(),
      (thrown) => store.report(thrown),
    );
  };
  useEffect(() => save, []);
  return (change) => {
    waiting.current.push(change);
    clearTimeout(timer.current);
    timer.current = setTimeout(save, SAVE_AFTER_MS);
  };
}

function Instructions({ options, onChange }: { options: ChatOptions; onChange: Change }) {
  const [text, setText] = useState(options.system_prompt ?? "");
  const t = texts.chatOptions.options;
  const onInput = (typed: string) => {
    setText(typed);
    onChange({ system_prompt: typed.trim() === "" ? null : typed });
  };
  return <TextField label={t.systemPrompt} hint={t.systemPromptHint} rows={5} value={text} onInput={onInput} />;
}

type ChatNote = Required<Pick<NonNullable<ChatOptions["note"]>, "depth" | "role" | "text">>;

function Note({ options, onChange }: { options: ChatOptions; onChange: Change }) {
  const [note, setNote] = useState<ChatNote>({ text: "", depth: NOTE_DEPTH, role: "system", ...options.note });
  const [depth, setDepth] = useState(String(note.depth));
  const t = texts.chatOptions.options;
  const set = (changes: Partial<ChatNote>) => {
    const changed = { ...note, ...changes };
    setNote(changed);
    onChange({ note: changed.text.trim() === "" ? null : changed });
  };
  return (
    <>
      <TextField
        label={t.note}
        hint={t.noteHint}
        rows={3}
        value={note.text}
        onInput={(text) => set({ text })}
      />
      {note.text.trim() !== "" && (
        <div class="options-pair">
          <TextField
            label={t.noteDepth}
            inputMode="numeric"
            value={depth}
            error={/^\d{1,4}$/.test(depth.trim()) ? undefined : t.bad(0, 9999)}
            onInput={(typed) => {
              setDepth(typed);
              if (/^\d{1,4}$/.test(typed.trim())) set({ depth: Number(typed) });
            }}
          />
          <Select
            label={t.noteRole}
            value={note.role}
            options={(["system", "user", "assistant"] as const).map((value) => ({ value, name: t.roles[value] }))}
            onChange={(role) => set({ role })}
          />
        </div>
      )}
    </>
  );
}

/** Documents that go with every message of the chat. */
function DocumentsSection({ chat }: { chat: OpenChat }) {
  const store = useStore();
  const t = texts.documents;
  return (
    <section aria-labelledby="options-documents">
      <h3 id="options-documents">{t.title}</h3>
      <AlwaysAttached
        uses={chat.options.value.documents ?? []}
        hint={t.attachedToChat}
        onChange={(change) => {
          const documents = change(chat.options.peek().documents ?? []);
          chat.change({ documents: documents.length === 0 ? null : documents }).catch((thrown) => store.report(thrown));
        }}
      />
    </section>
  );
}

/** Whether the model may call tools in this chat. */
function ToolsSection({ chat }: { chat: OpenChat }) {
  const store = useStore();
  const t = texts.toolCalls;
  return (
    <section aria-labelledby="options-tools">
      <h3 id="options-tools">{t.option}</h3>
      <Switch
        label={t.optionSwitch}
        hint={t.optionHint}
        isOn={chat.options.value.tools !== false}
        onChange={(isOn) => void chat.change({ tools: isOn ? null : false }).catch((thrown) => store.report(thrown))}
      />
    </section>
  );
}

/** A new summary is shown unless the user is editing it. */
function SummarySection({ chat, onChange }: { chat: OpenChat; onChange: Change }) {
  const store = useStore();
  const { summary, chapters, learn } = chat.options.value;
  const [text, setText] = useState(summary?.text ?? "");
  const box = useRef<HTMLElement>(null);
  const isMine = () => box.current?.contains(document.activeElement) ?? false;
  useEffect(() => {
    if (!isMine()) setText(summary?.text ?? "");
  }, [summary?.text]);
  const settings = store.preferences.settings.value;
  const t = texts.chatOptions;
  const write = (typed: string) => {
    setText(typed);
    onChange({ summary: typed.trim() === "" ? null : { ...summary, text: typed } });
  };
  return (
    <section aria-labelledby="options-summary" ref={box}>
      <h3 id="options-summary">{t.summary}</h3>
      {chapters && chapters.length > 0 ? <ChaptersSection chat={chat} chapters={chapters} onChange={onChange} /> : (
        <>
          <TextField
            label={t.summary}
            hint={summary?.up_to_message_id === undefined ? t.summaryHint : `${t.summaryHint} ${t.summaryExtent}`}
            rows={4}
            value={text}
            onInput={write}
          />
          {text !== "" && <Button kind="quiet" icon="trash" onClick={() => write("")}>{t.removeSummary}</Button>}
        </>
      )}
      {settings && (
        <Switch
          label={t.autoSummary}
          hint={t.autoSummaryHint}
          isOn={settings.auto_summary}
          onChange={(auto_summary) =>
            void store.preferences.change({ auto_summary }).catch((thrown) => store.report(thrown))}
        />
      )}
      {settings?.memory_proposals && (
        <Switch
          label={texts.memory.learn}
          hint={texts.memory.learnHint}
          isOn={learn !== false}
          onChange={(isOn) => onChange({ learn: isOn ? null : false })}
        />
      )}
    </section>
  );
}

/** An edited chapter isn't written again by itself. */
function ChaptersSection({ chat, chapters, onChange }: {
  chat: OpenChat;
  chapters: readonly Chapter[];
  onChange: (change: (current: ChatOptions) => ChatOptions) => void;
}) {
  /** Identified by the last message it covers, because chapters may be added in the meantime. */
  const write = (upTo: string, text: string) =>
    onChange(({ chapters: current }) => ({
      chapters: (current ?? []).flatMap((chapter) =>
        chapter.up_to_message_id !== upTo ? [chapter] : text.trim() === "" ? [] : [{ ...chapter, text }]
      ),
    }));
  return (
    <ol class="chapter-list">
      {chapters.map((chapter, n) => (
        <ChapterField key={chapter.up_to_message_id} {...{ chat, chapter, n }} onWrite={write} />
      ))}
    </ol>
  );
}

function ChapterField({ chat, chapter, n, onWrite }: {
  chat: OpenChat;
  chapter: Chapter;
  n: number;
  onWrite: (upTo: string, text: string) => void;
}) {
  const [text, setText] = useState(chapter.text);
  const box = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (!box.current?.contains(document.activeElement)) setText(chapter.text);
  }, [chapter.text]);
  const t = texts.memory.chapters;
  const { from_message_id: from, up_to_message_id: upTo } = chapter;
  const link = (id: string) => `/c/${encodeURIComponent(chat.id)}#${encodeURIComponent(id)}`;
  return (
    <li ref={box}>
      <TextField
        label={t.title(n + 1)}
        hint={
          <>
            {from && (
              <>
                <a href={link(from)}>{t.first}</a>
                {" – "}
              </>
            )}
            <a href={link(upTo)}>{t.last}</a>
            {chapter.edited && ` · ${t.edited}`}
          </>
        }
        rows={4}
        value={text}
        onInput={(typed) => {
          setText(typed);
          if (typed.trim() !== "") onWrite(upTo, typed);
        }}
      />
      <Button kind="quiet" icon="trash" label={t.removeOne(n + 1)} onClick={() => onWrite(upTo, "")}>{t.remove}</Button>
    </li>
  );
}
