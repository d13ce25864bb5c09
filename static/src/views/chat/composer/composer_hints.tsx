/** The hints above and below the composer. */
import { useState } from "preact/hooks";
import type { UpstreamFailure } from "../../../api/types.ts";
import { Button, IconButton } from "../../../components/Button.tsx";
import { lazy } from "../../../components/Lazy.tsx";
import { Notice } from "../../../components/Notice.tsx";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { getFailureTitle } from "../../../state/chat/reply_failure.ts";
import { useStore } from "../../../state/store.ts";
import { texts } from "../../../texts/texts.ts";

const FailureRemedy = lazy(() => import("../messages/FailureRemedy.tsx").then((file) => file.FailureRemedy), {
  as: "overlay",
});

/** Failures and conflicts are shown right above their text. */
export function ComposerHeader({ chat }: { chat: OpenChat }) {
  const problem = chat.problem.value;
  return (
    <>
      {problem && (
        <Notice
          tone="danger"
          title={problem.upstream ? getFailureTitle(problem) : texts.chat.failedTitle}
          error={problem}
          actions={
            <>
              {problem.upstream && <RefusalActions chat={chat} />}
              <Button onClick={() => chat.problem.value = undefined}>{texts.close}</Button>
            </>
          }
        />
      )}
      {problem?.upstream && <RefusalRemedy key={problem.message} chat={chat} upstream={problem.upstream} />}
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

/** The message is back in the composer: it can be sent again, to another model, too. */
function RefusalActions({ chat }: { chat: OpenChat }) {
  return (
    <>
      <Button icon="redo" onClick={() => chat.replies.send()}>{texts.chat.retry}</Button>
      <Button icon="plug" onClick={() => chat.picker.value = { kind: "chat" }}>{texts.chat.chooseModel}</Button>
    </>
  );
}

function RefusalRemedy({ chat, upstream }: { chat: OpenChat; upstream: UpstreamFailure }) {
  const [failed] = useState(() => ({ atMs: Date.now(), text: chat.draft.text.peek() }));
  const isUnchanged = chat.draft.text.value === failed.text && failed.text !== "";
  return (
    <FailureRemedy
      chat={chat}
      upstream={upstream}
      failedAtMs={failed.atMs}
      // A text that is being edited must not be sent.
      canRetryAlone={isUnchanged}
      onRetry={() => chat.replies.send()}
    />
  );
}

/** The images of the message. */
export function ImageRow({ chat }: { chat: OpenChat }) {
  const images = chat.images.items.value;
  if (images.length === 0) return null;
  return (
    <ul class="image-row" aria-label={texts.composer.images}>
      {images.map((image) => (
        <li key={image.id} aria-busy={image.url === undefined}>
          <img src={image.shownUrl} alt={image.name} />
          <IconButton
            icon="close"
            label={texts.composer.removeImage(image.name)}
            onClick={() => chat.images.remove(image.id)}
          />
        </li>
      ))}
    </ul>
  );
}

/** Makes clear that the demo is not a model, and that a temporary chat is not stored. */
export function ComposerFooter({ chat }: { chat: OpenChat }) {
  const { connections, isSetupCompleted } = useStore();
  if (chat.isTemporary) return <p class="composer-note">{texts.chat.temporaryNote}</p>;
  // The demo hint already says so.
  if (connections.active.value?.kind !== "demo" || (chat.isEmpty.value && !isSetupCompleted.value)) return null;
  return (
    <p class="composer-note">
      {texts.composer.demo}{" "}
      <a href="/settings/connections" onClick={() => void connections.discover()}>{texts.composer.demoLink}</a>
    </p>
  );
}
