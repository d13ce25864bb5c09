/** The composer: grows with its text, sends on Enter, accepts images and files, keeps the draft. */
import { useEffect, useRef, useState } from "preact/hooks";
import { IconButton } from "../../../components/Button.tsx";
import { lazy } from "../../../components/Lazy.tsx";
import { useAutoHeight, useMedia } from "../../../components/hooks.ts";
import { PHONE_QUERY } from "../../../components/overlays/Menu.tsx";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { commandsFor, parseCommand, runCommand } from "../../../state/chat/slash_commands.ts";
import { useStore } from "../../../state/store.ts";
import { texts } from "../../../texts/texts.ts";
import { addFiles } from "./add_files.ts";
import { LIST_ID, optionId, useCommandActions } from "./command_actions.ts";
import { ComposerFooter, ComposerHeader, ImageRow } from "./composer_hints.tsx";

const NextSpeakerBar = lazy(() => import("./NextSpeakerBar.tsx").then((file) => file.NextSpeakerBar), {
  as: "overlay",
});
const CommandList = lazy(() => import("./CommandList.tsx").then((file) => file.CommandList), { as: "overlay" });

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
  const [isOver, setOver] = useState(false);
  /** The prompt of the image; empty to have one written. */
  const [drawn, setDrawn] = useState<string>();
  const text = chat.draft.text.value;
  const isGhostwritten = chat.replies.impersonation.value !== undefined;
  const isRunning = chat.replies.isRunning.value || isGhostwritten;
  const isEmpty = text.trim() === "" && chat.pictures.items.value.length === 0;
  const isWaiting = chat.pictures.isBusy.value;
  const actions = useCommandActions(chat, setDrawn);

  // The command list follows the text until it is dismissed.
  const [dismissed, setDismissed] = useState("");
  const [chosen, setChosen] = useState(0);
  const commands = text === dismissed ? [] : commandsFor(text, chat);
  const at = Math.min(chosen, Math.max(0, commands.length - 1));

  useAutoHeight(area, text);
  useEffect(() => {
    // On touch screens focus would open the keyboard over the text. When Stop disappears, it loses the focus.
    if (!isTouch && document.activeElement === document.body) area.current?.focus();
  }, [isRunning]);

  const run = (name: (typeof commands)[number], rest: string) => {
    chat.draft.type("");
    runCommand(name, rest, chat, actions);
  };
  const send = () => {
    const command = parseCommand(text, chat);
    if (command) run(command.name, command.rest);
    else chat.replies.send();
    area.current?.focus();
  };
  const insertFiles = (files: Iterable<File>) => {
    const place = area.current?.selectionEnd ?? text.length;
    void addFiles(files, chat, place, (problem) => store.toasts.show(problem, { isError: true }));
  };
  const onListKey = (event: KeyboardEvent): boolean => {
    if (commands.length === 0) return false;
    if (event.key === "ArrowDown") setChosen((at + 1) % commands.length);
    else if (event.key === "ArrowUp") setChosen((at + commands.length - 1) % commands.length);
    else if (event.key === "Escape") setDismissed(text);
    else if (event.key === "Tab") chat.draft.type(`/${commands[at]} `);
    else if (event.key === "Enter" && !event.shiftKey) run(commands[at]!, "");
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
    <div
      class={isOver ? "composer-area is-over" : "composer-area"}
      onDragOver={(event) => {
        if (!event.dataTransfer?.types.includes("Files")) return;
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        setOver(false);
        const files = event.dataTransfer?.files;
        if (!files || files.length === 0) return;
        event.preventDefault();
        insertFiles(files);
      }}
    >
      <div class="column">
        <ComposerHeader chat={chat} />
        {chat.isGroup.value && !chat.isNew && <NextSpeakerBar chat={chat} />}
        {commands.length > 0 && <CommandList names={commands} at={at} onChoose={(name) => run(name, "")} />}
        <form
          class="composer"
          onSubmit={(event) => {
            event.preventDefault();
            send();
          }}
        >
          <ImageRow chat={chat} />
          <div class="composer-row">
            <IconButton icon="image" label={texts.composer.addImage} onClick={() => picker.current?.click()} />
            <input
              ref={picker}
              type="file"
              hidden
              multiple
              accept="image/*,text/*,.md,.json,.csv,.log,.ts,.js,.py"
              onChange={(event) => {
                insertFiles([...event.currentTarget.files ?? []]);
                event.currentTarget.value = "";
              }}
            />
            {!chat.isTemporary && !chat.isEmpty.value && (
              <IconButton
                icon="wand"
                label={texts.composer.draw}
                onClick={() => setDrawn("")}
              />
            )}
            {isRoomy && chat.options.value.participants?.length === 1 && !chat.isNew && (
              <IconButton
                icon="pencil"
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
              aria-autocomplete={commands.length > 0 ? "list" : undefined}
              aria-controls={commands.length > 0 ? LIST_ID : undefined}
              aria-activedescendant={commands.length > 0 ? optionId(commands[at]!) : undefined}
              enterkeyhint={isTouch ? "enter" : "send"}
              onInput={(event) => {
                setChosen(0);
                setDismissed("");
                chat.draft.type(event.currentTarget.value);
              }}
              onKeyDown={onKeyDown}
              onPaste={(event) => {
                const files = event.clipboardData?.files;
                // Office programs add an image of the text to the clipboard.
                if (!files || files.length === 0 || event.clipboardData?.types.includes("text/plain")) return;
                event.preventDefault();
                insertFiles(files);
              }}
            />
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
              : (
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
        <ComposerFooter chat={chat} />
        {drawn !== undefined && <GenerateImageDialog chat={chat} prompt={drawn} onClose={() => setDrawn(undefined)} />}
      </div>
    </div>
  );
}

function sends(event: KeyboardEvent, isTouch: boolean, sendOnEnter: boolean): boolean {
  if (event.ctrlKey || event.metaKey) return true;
  return !isTouch && event.shiftKey !== sendOnEnter;
}
