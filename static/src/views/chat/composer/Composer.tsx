/** The composer: grows with its text, sends on Enter, accepts images and files, keeps the draft. */
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { IconButton } from "../../../components/Button.tsx";
import { Icon } from "../../../components/Icon.tsx";
import { lazy } from "../../../components/Lazy.tsx";
import { useAutoHeight, useMedia, watchSize } from "../../../components/hooks.ts";
import { PHONE_QUERY } from "../../../components/overlays/Menu.tsx";
import type { PromptTemplate } from "../../../api/types.ts";
import { ACCEPTED_DOCUMENTS } from "../../../state/chat/attachments.ts";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import {
  type CommandName,
  findCommands,
  findTemplates,
  listVariables,
  parseCommand,
  runCommand,
} from "../../../state/chat/slash_commands.ts";
import { type Store, useStore } from "../../../state/store.ts";
import { texts } from "../../../texts/texts.ts";
import { followPress, type Press } from "../../talk/press.ts";
import { ThinkingMenu } from "../ThinkingMenu.tsx";
import { addFiles, toPastedFile } from "./add_files.ts";
import { createCommandActions, LIST_ID, type Listed, toOptionId } from "../chat_commands.ts";
import { ComposerFooter, ComposerHeader, ImageRow } from "./composer_hints.tsx";

const NextSpeakerBar = lazy(() => import("./NextSpeakerBar.tsx").then((file) => file.NextSpeakerBar), {
  as: "overlay",
});
const QuickReplyBar = lazy(() => import("./QuickReplyBar.tsx").then((file) => file.QuickReplyBar), { as: "overlay" });
const QueueRow = lazy(() => import("./QueueRow.tsx").then((file) => file.QueueRow), { as: "overlay" });
const RecordingRow = lazy(() => import("./AttachmentRows.tsx").then((file) => file.RecordingRow), {
  as: "overlay",
});
const DocumentRow = lazy(() => import("./AttachmentRows.tsx").then((file) => file.DocumentRow), { as: "overlay" });
const LinkOffer = lazy(() => import("./AttachmentRows.tsx").then((file) => file.LinkOffer), { as: "overlay" });
const CommandList = lazy(() => import("./CommandList.tsx").then((file) => file.CommandList), { as: "overlay" });

const ContextStrip = lazy(() => import("./ContextStrip.tsx").then((file) => file.ContextStrip), { as: "overlay" });
const InsertDialog = lazy(() => import("./InsertDialog.tsx").then((file) => file.InsertDialog), { as: "overlay" });

const TemplateDialog = lazy(() => import("./InsertDialog.tsx").then((file) => file.TemplateDialog), {
  as: "overlay",
});

const DictationBar = lazy(() => import("../../talk/DictationBar.tsx").then((file) => file.DictationBar), {
  as: "overlay",
});
const TalkScreen = lazy(() => import("../../talk/TalkScreen.tsx").then((file) => file.TalkScreen), { as: "overlay" });

const GenerateImageDialog = lazy(
  () => import("../../images/GenerateImageDialog.tsx").then((file) => file.GenerateImageDialog),
  {
    as: "overlay",
  },
);

/** The composer with its hints. */
export function Composer({ chat }: { chat: OpenChat }) {
  const store = useStore();
  const area = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  // On touch screens Enter is the only way to break a line, so only the button sends.
  const isTouch = useMedia("(pointer: coarse)");
  // On phones there is no space for it in the row; there it is a command.
  const isRoomy = !useMedia(PHONE_QUERY);
  /** The prompt of the image; empty to have one written. */
  /** The template whose variables are being filled in, and what is done with its text then. */
  const [filling, setFilling] = useState<{ template: PromptTemplate; use: (text: string) => void }>();
  const [voice, setVoice] = useState<"dictation" | "talk">();
  const press = useRef<Press>(undefined);
  // Loaded with the first reply, so that a message can also be queued without a network.
  const hasQueue = useEver(chat.replies.isRunning.value || chat.queued.value.length > 0);
  const text = chat.draft.text.value;
  const isGhostwritten = chat.replies.impersonation.value !== undefined;
  const isRunning = chat.replies.isRunning.value || isGhostwritten;
  const hasDocuments = chat.documents.items.value.length > 0;
  const isEmpty = text.trim() === "" && chat.images.items.value.length === 0 && !hasDocuments;
  const isWaiting = chat.images.isBusy.value || chat.documents.isBusy.value || chat.recordings.isBusy.value;
  const actions = createCommandActions(store, chat);

  // The command list follows what is typed here until it is dismissed. A draft from elsewhere doesn't open it.
  const [typedText, setTypedText] = useState("");
  const [chosen, setChosen] = useState(0);
  useEffect(() => {
    if (text !== "/" || chat.hasServerTexts.peek()) return;
    import("../../../api/tool_texts.ts").then(({ listTextServers }) => listTextServers(store.api.client)).then(
      (servers) => chat.hasServerTexts.value = servers.length > 0,
      () => {}, // the other commands work without it
    );
  }, [text === "/"]);
  chat.hasServerTexts.value; // the commands depend on it
  const listed = text === typedText ? listMatches(text, chat, store) : [];
  const at = Math.min(chosen, Math.max(0, listed.length - 1));

  useAutoHeight(area, text);
  const isStacked = useStacking(area, text === "", !isRoomy);
  useEffect(() => {
    // On touch screens focus would open the keyboard over the text. When Stop disappears, it loses the focus.
    if (!isTouch && document.activeElement === document.body) area.current?.focus();
  }, [isRunning]);

  const run = (name: CommandName, rest: string) => {
    chat.draft.type("");
    runCommand(name, rest, chat, actions);
  };
  const fill = (template: PromptTemplate, use: (text: string) => void) => {
    if (listVariables(template.text).length === 0) use(template.text);
    else setFilling({ template, use });
  };
  const insertText = (inserted: string) => {
    chat.draft.type(inserted);
    area.current?.focus();
  };
  const choose = (item: Listed) => {
    if (item.kind === "command") run(item.name, "");
    else fill(item.template, insertText);
  };
  const send = () => {
    const command = parseCommand(text, chat);
    if (command) run(command.name, command.rest);
    else if (chat.replies.isRunning.peek()) void chat.replies.queue();
    else {
      store.toasts.dismissNotes();
      chat.replies.send();
    }
    area.current?.focus();
  };
  const insertFiles = (files: Iterable<File>) => {
    const caret = area.current?.selectionEnd ?? text.length;
    void addFiles(files, chat, caret, (problem) => store.toasts.show(problem, { isError: true }));
  };
  /** Attaches a long text instead of filling the composer with it. */
  const attachPasted = (pasted: string): boolean => {
    const file = toPastedFile(pasted, chat);
    if (file === undefined) return false;
    const known = new Set(chat.documents.items.peek().map(({ key }) => key));
    insertFiles([file]);
    const insert = () => {
      for (const { key } of chat.documents.items.peek()) if (!known.has(key)) chat.documents.remove(key);
      const before = chat.draft.text.peek();
      chat.draft.type(before === "" ? pasted : `${before}\n\n${pasted}`);
    };
    store.toasts.show(texts.composer.pasteAttached, { action: { label: texts.composer.pasteInsert, run: insert } });
    return true;
  };
  const column = useRef<HTMLDivElement>(null);
  useToastPlace(column);
  const isOver = useFileDrop(area, insertFiles);
  const link = chat.isTemporary ? undefined : findLinkAtEnd(text);
  const onListKey = (event: KeyboardEvent): boolean => {
    const item = listed[at];
    if (item === undefined) return false;
    if (event.key === "ArrowDown") setChosen((at + 1) % listed.length);
    else if (event.key === "ArrowUp") setChosen((at + listed.length - 1) % listed.length);
    else if (event.key === "Escape") setTypedText("");
    else if (event.key === "Tab" && item.kind === "command") chat.draft.type(`/${item.name} `);
    else if (event.key === "Tab" || (event.key === "Enter" && !event.shiftKey)) choose(item);
    else return false;
    return true;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // 229: Safari ends a composition before its Enter arrives, without `isComposing`.
    if (event.isComposing || event.keyCode === 229) return;
    if (onListKey(event)) event.preventDefault();
    else if (event.key === "Enter" && sends(event, isTouch, store.preferences.settings.value?.send_on_enter ?? true)) {
      event.preventDefault();
      send();
    } else if (event.key === "Escape" && isRunning) void chat.replies.stop();
    else if (event.key === "ArrowUp" && text === "" && !event.altKey && chat.actions.startEditOfLastTurn()) {
      event.preventDefault();
    }
  };
  return (
    <div class={isOver ? "composer-area is-over" : "composer-area"}>
      <div ref={column} class="column">
        <ComposerHeader chat={chat} />
        {!chat.isEmpty.value && <ContextStrip chat={chat} />}
        {chat.isInserting.value && <InsertDialog chat={chat} onClose={() => chat.isInserting.value = false} />}
        {chat.isGroup.value && !chat.isNew && <NextSpeakerBar chat={chat} />}
        {store.preferences.settings.value?.prompt_templates.some(({ button }) => button) && (
          <QuickReplyBar chat={chat} fill={fill} insert={insertText} />
        )}
        {hasQueue && <QueueRow chat={chat} area={area} />}
        <p class="visually-hidden" role="status">{chat.queueNews.value}</p>
        {listed.length > 0 && <CommandList items={listed} at={at} onChoose={choose} />}
        <form
          class="composer"
          onSubmit={(event) => {
            event.preventDefault();
            send();
          }}
        >
          <ImageRow chat={chat} />
          {hasDocuments && <DocumentRow chat={chat} />}
          {link !== undefined && <LinkOffer chat={chat} url={link} />}
          {chat.recordings.items.value.length > 0 && <RecordingRow chat={chat} />}
          {voice === "dictation" && (
            <DictationBar
              prompt={chat.title.value}
              press={press.current}
              chat={chat}
              onText={(dictated) => {
                const typed = chat.draft.text.peek().trimEnd();
                chat.draft.type(typed === "" ? dictated : `${typed} ${dictated}`);
                if (!isTouch) area.current?.focus();
              }}
              onClose={() => setVoice(undefined)}
            />
          )}
          <div class={isStacked ? "composer-row is-stacked" : "composer-row"}>
            <IconButton icon="clip" label={texts.composer.addImage} onClick={() => picker.current?.click()} />
            <input
              ref={picker}
              type="file"
              hidden
              multiple
              accept={`image/*,.json,.ts,.js,.py,${ACCEPTED_DOCUMENTS}`}
              onChange={(event) => {
                insertFiles([...event.currentTarget.files ?? []]);
                event.currentTarget.value = "";
              }}
            />
            {isRoomy && <ThinkingMenu chat={chat} />}
            {!chat.isTemporary && !chat.isEmpty.value && (
              <IconButton
                icon="wand"
                label={texts.composer.draw}
                onClick={() => chat.drawing.value = ""}
              />
            )}
            {isRoomy && chat.options.value.participants?.length === 1 && !chat.isNew && (
              <IconButton
                icon="quill"
                label={texts.composer.writeForMe}
                isDisabled={isRunning}
                onClick={() => void chat.replies.impersonate()}
              />
            )}
            <textarea
              ref={area}
              rows={1}
              value={text}
              readOnly={isGhostwritten}
              placeholder={texts.composer.placeholder}
              aria-label={texts.composer.label}
              aria-autocomplete={listed.length > 0 ? "list" : undefined}
              aria-controls={listed.length > 0 ? LIST_ID : undefined}
              aria-activedescendant={listed[at] && toOptionId(listed[at])}
              enterkeyhint={isTouch ? "enter" : "send"}
              onInput={(event) => {
                setChosen(0);
                chat.draft.type(event.currentTarget.value);
                setTypedText(event.currentTarget.value);
              }}
              onKeyDown={onKeyDown}
              onPaste={(event) => {
                const files = event.clipboardData?.files;
                // Office programs add an image of the text to the clipboard.
                if (event.clipboardData?.types.includes("text/plain")) {
                  if (attachPasted(event.clipboardData.getData("text/plain"))) event.preventDefault();
                  return;
                }
                if (!files || files.length === 0) return;
                event.preventDefault();
                insertFiles(files);
              }}
            />
            <button
              type="button"
              class="icon-button quiet"
              title={texts.composer.dictate}
              aria-label={texts.composer.dictate}
              // Pressed and held, it dictates until it's released; a click of a keyboard has no detail.
              onPointerDown={(event) => {
                if (event.button !== 0) return;
                // Otherwise the browser would capture the press, and its release would go to this button only.
                event.preventDefault();
                press.current = followPress(globalThis, event);
                setVoice("dictation");
              }}
              onClick={(event) => event.detail === 0 && setVoice("dictation")}
            >
              <Icon name="microphone" />
            </button>
            {isEmpty && !isRunning && (
              <IconButton
                icon="wave"
                label={texts.composer.talk}
                onClick={() => setVoice("talk")}
              />
            )}
            {chat.replies.isRunning.value && !isEmpty && (
              <IconButton icon="queue" type="submit" label={texts.composer.queue} isDisabled={isWaiting} />
            )}
            {isRunning
              ? (
                <IconButton
                  key="stop"
                  icon="stop"
                  kind="primary"
                  label={texts.composer.stop}
                  isDisabled={chat.replies.run.value?.isStopping.value}
                  onClick={() => chat.replies.stop()}
                />
              )
              // On phones, Talk is in its place while there's nothing to send.
              : (isRoomy || !isEmpty) && (
                <IconButton
                  key="send"
                  icon="send"
                  kind="primary"
                  type="submit"
                  label={texts.composer.send}
                  isDisabled={isEmpty || isWaiting}
                />
              )}
          </div>
        </form>
        {!isRoomy && <ThinkingMenu chat={chat} isNamed />}
        <ComposerFooter chat={chat} />
        {filling && (
          <TemplateDialog
            template={filling.template}
            onInsert={(filled) => {
              setFilling(undefined);
              filling.use(filled);
            }}
            onClose={() => setFilling(undefined)}
          />
        )}
        {voice === "talk" && <TalkScreen chat={chat} onClose={() => setVoice(undefined)} />}
        {chat.drawing.value !== undefined && (
          <GenerateImageDialog
            chat={chat}
            prompt={chat.drawing.value}
            onClose={() => chat.drawing.value = undefined}
          />
        )}
      </div>
    </div>
  );
}

/** Returns true once it was. */
function useEver(isNow: boolean): boolean {
  const was = useRef(false);
  was.current ||= isNow;
  return was.current;
}

/** Height of the text above which it has several lines: one has 24 px. */
const ONE_LINE_PX = 30;

/**
 * Returns whether the text is above the buttons: on phones, once it has several lines and until it is empty, since
 * between the buttons a line has space for about three words.
 */
function useStacking(area: RefObject<HTMLTextAreaElement | null>, isEmpty: boolean, isPhone: boolean): boolean {
  const [isStacked, setStacked] = useState(false);
  useEffect(() => {
    if (isEmpty || !isPhone) return setStacked(false);
    // Unlike measuring after each key, this costs no layout.
    return watchSize([area.current!], ([entry]) => {
      if (entry!.contentRect.height > ONE_LINE_PX) setStacked(true);
    });
  }, [isEmpty, isPhone]);
  return isStacked;
}

/** Says where the composer is, so that toasts stand above it. Its distance to the bottom changes with its size only. */
function useToastPlace(column: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const { style } = document.documentElement;
    const shown = column.current!;
    const stop = watchSize([shown, shown.parentElement!], () => {
      if (!shown.isConnected) return; // Another screen is shown since the last frame.
      const { left, right, top } = shown.getBoundingClientRect();
      style.setProperty("--composer-height", `${globalThis.innerHeight - top}px`);
      style.setProperty("--composer-start", `${left}px`);
      style.setProperty("--composer-end", `${globalThis.innerWidth - right}px`);
    });
    return () => {
      stop();
      for (const name of ["height", "start", "end"]) style.removeProperty(`--composer-${name}`);
    };
  }, []);
}

/** Commands first, then the owner's templates. */
function listMatches(text: string, chat: OpenChat, store: Store): Listed[] {
  const templates = store.preferences.settings.value?.prompt_templates ?? [];
  return [
    ...findCommands(text, chat).map((name): Listed => ({ kind: "command", name })),
    ...findTemplates(text, templates).map((template): Listed => ({ kind: "template", name: template.name, template })),
  ];
}

function sends(event: KeyboardEvent, isTouch: boolean, sendOnEnter: boolean): boolean {
  if (event.ctrlKey || event.metaKey) return true;
  return !isTouch && event.shiftKey !== sendOnEnter;
}

/** A last line that is nothing but a link, as pasted or shared: its page can be attached. */
function findLinkAtEnd(text: string): string | undefined {
  const [, link] = /(?:^|\n)[ \t]*(https?:\/\/\S{1,2000})\s*$/i.exec(text.slice(-2100)) ?? [];
  return link !== undefined && URL.canParse(link) ? link : undefined;
}

/** Accepts files dropped anywhere on the chat. Returns whether some are dragged over it. */
function useFileDrop(
  area: { readonly current: HTMLElement | null },
  onFiles: (files: Iterable<File>) => void,
): boolean {
  const [isOver, setOver] = useState(false);
  const latest = useRef(onFiles);
  latest.current = onFiles;
  useEffect(() => {
    const chat = area.current?.closest("main");
    if (!chat) return;
    // A dialog over the chat handles its own files.
    const isMeant = ({ target, dataTransfer }: DragEvent) =>
      dataTransfer?.types.includes("Files") && !(target instanceof Element && target.closest("dialog"));
    const over = (event: DragEvent) => {
      if (!isMeant(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = ({ relatedTarget }: DragEvent) => {
      if (!(relatedTarget instanceof Node && chat.contains(relatedTarget))) setOver(false);
    };
    const drop = (event: DragEvent) => {
      setOver(false);
      const files = event.dataTransfer?.files;
      if (!isMeant(event) || !files || files.length === 0) return;
      event.preventDefault();
      latest.current(files);
    };
    chat.addEventListener("dragover", over);
    chat.addEventListener("dragleave", leave);
    chat.addEventListener("drop", drop);
    return () => {
      chat.removeEventListener("dragover", over);
      chat.removeEventListener("dragleave", leave);
      chat.removeEventListener("drop", drop);
    };
  }, []);
  return isOver;
}
