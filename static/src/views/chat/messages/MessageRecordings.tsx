/** The recordings of a user message. */
import { useState } from "preact/hooks";
import { useFileUrl } from "../../../components/ApiFile.tsx";
import type { Message } from "../../../api/types.ts";
import { listRecordingUrls } from "../../../state/chat/message_text.ts";
import { texts } from "../../../texts/texts.ts";

/** A player for each. */
export function MessageRecordings({ message }: { message: Message }) {
  return (
    <div class="message-recordings">
      {listRecordingUrls(message).map((url, index) => <Recording key={url} url={url} n={index + 1} />)}
    </div>
  );
}

function Recording({ url, n }: { url: string; n: number }) {
  const [isGone, setGone] = useState(false);
  if (isGone) return <p class="muted">{texts.talk.recordingGone}</p>;
  return (
    <audio
      controls
      preload="metadata"
      src={useFileUrl(url)}
      aria-label={texts.talk.recordingN(n)}
      onError={() => setGone(true)}
    />
  );
}
