/** The image behind the messages. */
import { useFileUrl } from "../../../components/ApiFile.tsx";

/** @param props.url URL path of an attachment. */
export function ChatBackground({ url }: { url: string }) {
  const file = useFileUrl(url);
  if (file === undefined) return null;
  return <div class="chat-background" aria-hidden="true" style={{ backgroundImage: `url("${file}")` }} />;
}
