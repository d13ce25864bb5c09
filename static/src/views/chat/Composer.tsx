/** Where a message is written: grows with its text, sends on Enter, keeps what was typed. */
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { Button, IconButton } from "../../components/Button.tsx";
import { Notice } from "../../components/Notice.tsx";
import { useMedia } from "../../components/hooks.ts";
import type { OpenChat } from "../../state/open_chat.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** The composer with what there is to say about it. */
export function Composer({ chat }: { chat: OpenChat }) {
  const area = useRef<HTMLTextAreaElement>(null);
  // With a finger Enter is the only way to break a line; there the button sends.
  const isTouch = useMedia("(pointer: coarse)");
  const text = chat.draft.text.value;
  const isRunning = chat.isRunning.value;

  useLayoutEffect(() => {
    const element = area.current;
    if (!element) return;
    element.style.height = "auto";
    element.style.height = `${element.scrollHeight}px`;
  }, [text]);
  useEffect(() => {
    // On touch focus would open the keyboard over what is to be read.
    if (!isTouch && document.activeElement === document.body) area.current?.focus();
  }, []);

  const send = () => {
    chat.send();
    area.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // 229: Safari ends a composition before its Enter arrives, without `isComposing`.
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === "Enter" && !event.shiftKey && !isTouch) {
      event.preventDefault();
      send();
    } else if (event.key === "Escape" && chat.isRunning.peek()) void chat.stop();
  };
  return (
    <div class="composer-area">
      <div class="column">
        <Above chat={chat} />
        <form
          class="composer"
          onSubmit={(event) => {
            event.preventDefault();
            send();
          }}
        >
          <textarea
            ref={area}
            rows={1}
            value={text}
            placeholder={texts.composer.placeholder}
            aria-label={texts.composer.label}
            enterkeyhint={isTouch ? "enter" : "send"}
            onInput={(event) => chat.draft.type(event.currentTarget.value)}
            onKeyDown={onKeyDown}
          />
          {isRunning
            ? (
              <IconButton
                key="stop"
                icon="stop"
                kind="primary"
                label={texts.composer.stop}
                isDisabled={chat.run.value?.isStopping.value}
                onClick={() => chat.stop()}
              />
            )
            : (
              <IconButton
                key="send"
                icon="send"
                kind="primary"
                type="submit"
                label={texts.composer.send}
                isDisabled={text.trim() === ""}
              />
            )}
        </form>
        <Below isEmpty={chat.shown.value.length === 0} />
      </div>
    </div>
  );
}

/** Failures and clashes stand right over the text they are about. */
function Above({ chat }: { chat: OpenChat }) {
  const problem = chat.problem.value;
  return (
    <>
      {problem && (
        <Notice
          tone="danger"
          title={texts.chat.notSent}
          error={problem}
          actions={<Button onClick={() => chat.problem.value = undefined}>{texts.close}</Button>}
        />
      )}
      {chat.draft.hasClash.value && (
        <Notice
          tone="warning"
          title={texts.composer.clash}
          actions={
            <>
              <Button onClick={() => chat.draft.settle("mine")}>{texts.composer.keepMine}</Button>
              <Button onClick={() => chat.draft.settle("theirs")}>{texts.composer.takeTheirs}</Button>
            </>
          }
        >
          {chat.draft.clash.value}
        </Notice>
      )}
    </>
  );
}

/** Nobody should take the demonstration for a model. */
function Below({ isEmpty }: { isEmpty: boolean }) {
  const { connections, isSetupCompleted } = useStore();
  // The hint of the first visit says the same.
  if (connections.active.value?.kind !== "demo" || (isEmpty && !isSetupCompleted.value)) return null;
  return (
    <p class="composer-note">
      {texts.composer.demo}{" "}
      <a href="/settings/connections" onClick={() => void connections.discover()}>{texts.composer.demoLink}</a>
    </p>
  );
}
