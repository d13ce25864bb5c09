/** The messages in their order, followed while the reader is at the end. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button } from "../../components/Button.tsx";
import { Icon } from "../../components/Icon.tsx";
import type { OpenChat } from "../../state/open_chat.ts";
import { texts } from "../../texts/texts.ts";
import { Announcer } from "./Announcer.tsx";
import { MessageView } from "./MessageView.tsx";

/** Messages shown at first, and how many more each step back brings. */
const STEP = 60;

/** A reader who is at most this far from the end wants to follow. */
const NEAR_END_PX = 64;

/** The scrolling list. */
export function MessageList({ chat }: { chat: OpenChat }) {
  const [shownCount, setShownCount] = useState(STEP);
  const follow = useFollowing(chat);
  const all = chat.shown.value;
  const messages = all.slice(Math.max(0, all.length - shownCount));
  const lastId = all.at(-1)?.id;
  return (
    <div class="message-area">
      <div
        class="message-scroll"
        ref={follow.scroll}
        onScroll={follow.onScroll}
        tabIndex={0}
        role="region"
        aria-label={texts.chat.log}
      >
        <div class="column messages" ref={follow.content} role="log" aria-live="off" aria-label={texts.chat.log}>
          {messages.length < all.length && (
            <Button kind="quiet" onClick={() => setShownCount(shownCount + STEP)}>{texts.chat.earlier}</Button>
          )}
          {messages.map((message) => (
            <MessageView
              key={message.id}
              chat={chat}
              message={message}
              isLast={message.id === lastId}
            />
          ))}
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

/** Keeps the end in view while the reader is there, counts what came while not. */
function useFollowing(chat: OpenChat) {
  const scroll = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const isFollowing = useRef(true);
  const blocksSeen = useRef(0);
  const [isAway, setAway] = useState(false);
  const [newCount, setNewCount] = useState(0);

  const toEnd = () => {
    const box = scroll.current;
    if (box) box.scrollTop = box.scrollHeight;
  };
  const countBlocks = () => content.current?.querySelectorAll(".prose > *").length ?? 0;

  useLayoutEffect(toEnd, []);
  useEffect(() => {
    const observer = new ResizeObserver(() => {
      if (isFollowing.current) toEnd();
      else setNewCount(Math.max(0, countBlocks() - blocksSeen.current));
    });
    if (content.current) observer.observe(content.current);
    if (scroll.current) observer.observe(scroll.current);
    return () => observer.disconnect();
  }, []);

  // What the reader sends is what the reader wants to see.
  const lastOwn = chat.shown.value.findLast((message) => message.role === "user")?.id;
  useEffect(() => {
    isFollowing.current = true;
    setAway(false);
    toEnd();
  }, [lastOwn]);

  const onScroll = () => {
    const box = scroll.current;
    if (!box) return;
    const isNear = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END_PX;
    if (isNear === isFollowing.current) return;
    isFollowing.current = isNear;
    blocksSeen.current = countBlocks();
    setNewCount(0);
    setAway(!isNear);
  };
  const jump = () => {
    isFollowing.current = true;
    setAway(false);
    toEnd();
    scroll.current?.focus({ preventScroll: true });
  };
  return { scroll, content, onScroll, isAway, newCount, jump };
}
