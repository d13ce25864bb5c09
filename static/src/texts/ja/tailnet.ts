/** Texts of the tailnet node. */
import type { tailnet as English } from "../en/tailnet.ts";

/** Japanese. */
export const tailnet: typeof English = {
  tailnet: {
    title: "Tailnet",
    intro:
      "Parlor を tailnet にマシンとして追加します。インターネットにポートを開かずに、どこからでもデバイスから名前で接続できます。このマシンの Tailscale には影響しません。",
    loadFailed: "Tailnet の状態を読み込めませんでした",
    states: {
      disabled: "オフ",
      starting: "起動中",
      needs_auth: "サインインが必要",
      running: "オン",
      stopped: "停止",
      error: "失敗",
    },
    name: "マシン名",
    nameHint: "英字、数字、ハイフン。tailnet がドメインを付け、名前が使われている場合は番号も付けます。",
    nameWrong: "英小文字、数字、ハイフンを 1～63 文字で入力してください。先頭と末尾にハイフンは使えません",
    turnOn: "オンにする",
    before: "オンにする前に",
    beforeOpen:
      "tailnet の全員が Parlor に接続できるようになり、新しいアドレスで最初のパスキーが作成されるまでは誰でも使えます。最初に開いてパスキーを作成してください。",
    beforeLog: "HTTPS では、名前が公開の証明書ログに記録されます。",
    beforeClosed:
      "127.0.0.1 で待ち受ける UDP サービスを除き、このマシンのほかのものは tailnet から接続できません。UDP サービスも遮断するには、tailnet のアクセスルールでポート 80 と 443 だけを許可してください。",
    starting: "ノードを起動しています。数秒かかります。最初の証明書の取得には最長 1 分かかります。",
    stopping: "ノードをオフにしています。",
    signIn: "tailnet にサインイン",
    signInText: "ここでサインインするか、tailnet のアカウントがあるデバイスでこのコードを読み取ってください。",
    signInQr: "サインインリンクの QR コード",
    address: "アドレス",
    addressQr: "アドレスの QR コード",
    copied: "tailnet のデバイスで開き、パスキーを作成してください。それまでは tailnet の全員が Parlor を使えます。",
    plain: "暗号化されていない HTTP",
    plainOpen:
      "このアドレスではパスキーを使えないため、tailnet の全員が Parlor を使えます。これを防ぐには、pairing = “code” を設定し、トークンでサインインしてください。",
    stopped: "ノードはこのマシンで停止されました。",
    failed: "ノードでエラーが発生しました",
    notOn: "ノードをオンにできませんでした",
    again: "もう一度試す",
    rename: "名前を変更",
    turnOff: "オフにする",
    turnOffAsk: "tailnet のノードをオフにしますか？",
    turnOffReach: (address: string) => `${address} では Parlor に接続できなくなります。`,
    turnOffHere: "現在このアドレスを使っているため、このページは動作しなくなります。",
    turnOffWipe: "ノードはサインアウトされ、鍵と証明書は削除されます。パスキーとチャットは残ります。",
    turnOffAgain:
      "もう一度使うには、再びサインインする必要があります。tailnet の一覧には古いマシンが残るため、そこで削除するまで新しいマシンの名前に番号が付くことがあります。",
    turnedOff: "tailnet のノードをオフにしました",
  },
  phone: {
    title: "スマートフォンで使う",
    intro: "スマートフォンから届くアドレスと、読み取るコードを用意します。",
    open: "スマートフォンを設定",
    address: "スマートフォン用のアドレス",
    whyNotLocalhost: (host: string) =>
      `${host}はどの端末でも「その端末自身」を指すため、スマートフォンからはParlorに届きません。HTTPSの別のアドレスが必要です。パスキーもHTTPSでのみ使えます。`,
    whyHttps: "このアドレスはHTTPSではないため、パスキーを使えません。方法を選んでください。",
    ways: {
      tailnet: "テールネット：ポート開放も証明書も不要で、どこからでも接続",
      proxy: "証明書付きのプロキシ：Caddyなどで自分のドメインを使用",
    },
    proxyText:
      "CaddyなどのプロキシでドメインのHTTPSを受け、Parlorに転送します。プロキシをtrusted_proxiesに追加し、アドレスをここに入力してください。プロキシがこのマシンで動いている場合、localhostではParlorを開けなくなるので、新しいアドレスで続けてください。",
    proxyAddress: "アドレス",
    proxyWrong: "https://で始まる、IPアドレスではない名前のアドレスを入力してください",
    checking: "このアドレスがParlorにつながるか確認しています…",
    checks: {
      ok: "このアドレスはParlorにつながり、スマートフォンに必要なものがそろっています。",
      unresolved: "この名前にはまだアドレスがありません",
      unreachable: "このアドレスから応答がありません",
      certificate: "このアドレスの証明書は信頼されていません",
      host_not_allowed: "Parlorはまだこの名前を受け付けません",
      other_server: "このアドレスでは別のサーバーが応答しています",
      proxy_headers: "接続が暗号化されていることをParlorが確認できません",
      host_changed: "プロキシが名前を書き換えています",
    },
    checkHints: {
      unresolved: (host: string) =>
        `${host}がプロキシを指すようにDNSレコードを追加してください。反映には時間がかかります。`,
      unreachable: () =>
        "プロキシが動いていて、ポートが開いているか確認してください。ルーターによっては、家庭内から自分の公開アドレスに接続できません。その場合でも、スマートフォンは外から接続できます。",
      certificate: () =>
        "スマートフォンでも信頼されません。名前がCaddyを指していれば、Caddyが証明書を自動で取得します。ほかのプロキシには、Let’s Encryptなどの公的な証明書が必要です。",
      host_not_allowed: (host: string) => `設定のallowed_hostsに${host}を追加して、Parlorを再起動してください。`,
      other_server: () => "プロキシがこの名前をどのプログラムに渡しているか確認してください。",
      proxy_headers: () =>
        "プロキシはX-Forwarded-ProtoとX-Forwarded-Forを送り、そのアドレスがtrusted_proxiesに含まれている必要があります。",
      host_changed: (host: string) => `プロキシがHostヘッダーをそのまま渡すようにしてください: ${host}`,
    },
    scan: "スマートフォンで読み取る",
    waitingAddress: "アドレスの準備ができると、ここにコードが表示されます。",
    scanText: "スマートフォンのカメラでコードを読み取り、リンクを開いてパスキーを作成します。",
    waitingDevice: "スマートフォンのサインインを待っています",
    arrived: (name: string) => `${name}がサインインしました`,
    unreachable:
      "反応がない場合は、スマートフォンが同じテールネットまたはネットワークにあり、このアドレスでParlorが表示されるか確認してください。",
  },
};
