/** Says that a running reply has had no new text for a while, with Stop and Retry. */
import { useEffect, useState } from "preact/hooks";
import { Button } from "../../../components/Button.tsx";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import type { ReplyStream } from "../../../state/chat/reply_stream.ts";
import { texts } from "../../../texts/texts.ts";

/** After this time without text, the reader learns that it isn't the page. */
const STALLED_S = 20;

/** Shown once the reply has stalled. */
export function StalledNote({ chat, run }: { chat: OpenChat; run: ReplyStream }) {
  const length = run.text.value.length + run.reasoning.value.length;
  const [isStalled, setStalled] = useState(false);
  useEffect(() => {
    setStalled(false);
    const timer = setTimeout(() => setStalled(true), STALLED_S * 1000);
    return () => clearTimeout(timer);
  }, [length, run]);
  if (!isStalled) return null;
  const isStopping = run.isStopping.value;
  const retry = async () => {
    await chat.replies.stop();
    await chat.replies.replyEnded();
    chat.replies.regenerate(run.messageId);
  };
  return (
    <div class="reply-state reply-stalled">
      <span role="status">{texts.chat.stalled(STALLED_S)}</span>
      <Button icon="stop" isDisabled={isStopping} onClick={() => void chat.replies.stop()}>
        {texts.composer.stop}
      </Button>
      <Button icon="redo" isDisabled={isStopping} onClick={() => void retry()}>{texts.chat.retry}</Button>
    </div>
  );
}
