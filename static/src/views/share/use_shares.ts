/** The hook of the shares that wait on this device. */
import { useEffect, useState } from "preact/hooks";
import { LatestRead } from "../../state/app/latest_read.ts";
import { listenToShares, readShares, type Share } from "../../state/app/shared_content.ts";

/** Returns the shares that wait, newest first, also those that arrive in another tab; undefined until they're read. */
export function useShares(): readonly Share[] | undefined {
  const [latest] = useState(() => new LatestRead());
  const [shares, setShares] = useState<readonly Share[]>();
  useEffect(() => {
    const refresh = () => void latest.run(readShares, setShares);
    const stop = listenToShares(refresh);
    refresh();
    return stop;
  }, []);
  return shares;
}
