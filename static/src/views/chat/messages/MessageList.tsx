/** The messages in their order: the end is followed while the reader is there, more come in as they scroll. */
import { useEffect, useRef } from "preact/hooks";
import { Button } from "../../../components/Button.tsx";
import { Icon } from "../../../components/Icon.tsx";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { texts } from "../../../texts/texts.ts";
import { Announcer } from "./Announcer.tsx";
import { useFollowing } from "./use_follow_end.ts";
import { MessageView } from "./MessageView.tsx";
import { useStepsBack } from "./load_older.ts";
import { useTarget } from "./jump_target.ts";

/** How far before an end of the list more is fetched, so that a reader seldom meets that end. */
const AHEAD = "1200px 0px";

/** The scrolling list. */
export function MessageList({ chat }: { chat: OpenChat }) {
  const box = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const follow = useFollowing(chat, box, content);
  const stepBack = useStepsBack(chat, box, content);
  useTarget(chat, content, follow.leave, follow.onScroll);
  const { hasAbove, hasBelow, shown } = chat.window;
  const lastId = chat.lastMessage.value?.id;
  return (
    <div class="message-area">
      <div
        class="message-scroll"
        ref={box}
        onScroll={follow.onScroll}
        tabIndex={0}
        role="region"
        aria-label={texts.chat.log}
      >
        <div class="column messages" ref={content} role="log" aria-live="off" aria-label={texts.chat.log}>
          {hasAbove.value && <More key="above" box={box} label={texts.chat.earlier} onNear={stepBack} />}
          {shown.value.map((message) => (
            <MessageView key={message.id} chat={chat} message={message} isLast={message.id === lastId} />
          ))}
          {hasBelow.value && (
            <More
              key="below"
              box={box}
              label={texts.chat.later}
              onNear={() => chat.window.moreBelow()}
            />
          )}
        </div>
      </div>
      {follow.isAway && (
        <button type="button" class="jump" onClick={follow.jump}>
          <Icon name="down" />
          {texts.chat.latest}
          {follow.newCount > 0 && <span class="jump-count">{texts.chat.latestWith(follow.newCount)}</span>}
        </button>
      )}
      <Announcer chat={chat} />
    </div>
  );
}

/** An end of the list that has more behind it: fetched when it comes near, or when it is pressed. */
function More(
  { box, label, onNear }: { box: { current: HTMLElement | null }; label: string; onNear: () => Promise<void> | void },
) {
  const mark = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let isNear = false;
    let isBusy = false;
    const go = async () => {
      if (isBusy) return;
      isBusy = true;
      await onNear();
      isBusy = false;
      // What came in may be less than the way to it; the observer tells only of changes.
      if (isNear) setTimeout(() => isNear && go(), 50);
    };
    const observer = new IntersectionObserver(([entry]) => {
      isNear = entry!.isIntersecting;
      if (isNear) void go();
    }, { root: box.current, rootMargin: AHEAD });
    observer.observe(mark.current!);
    return () => {
      isNear = false;
      observer.disconnect();
    };
  }, []);
  return (
    <div class="more-messages" ref={mark}>
      <Button kind="quiet" onClick={() => void onNear()}>{label}</Button>
    </div>
  );
}
