/** Sentences of the server. */
import type { ServerTexts } from "../server_texts.ts";

/** Japanese. */
export const serverTexts: ServerTexts = {
  reasons: {
    not_plain_file: "インポート内の通常のファイルではありません",
    unreadable: "読み込めません",
    too_long: "長すぎるため取り込めません",
    not_json: "UTF-8 の JSON ではありません",
    not_whole_json: "JSON が途中で切れています",
    not_object: "JSON のオブジェクトではありません",
    not_chat: "チャットではありません",
    no_messages: "メッセージがありません",
    messages_missing: "メッセージが含まれていません",
    not_jsonl: ".jsonl ファイルではありません",
    other_parts: "インポートしない種類の部分: {kinds}",
    other_files: "チャットではないファイルはインポートしません",
    broken_line: "{line} 行目は JSON のオブジェクトではないためスキップしました",
    broken_lines: "{count} 行が JSON のオブジェクトではありません",
    image_missing: "画像「{image}」がありません",
    files_not_in_export: "ファイルはエクスポートに含まれないためインポートしません",
    claude_instructions: "プロジェクト「{project}」の指示はインポートしません",
    artifact_edits: "アーティファクトの後からの編集は反映されません",
    chatgpt_images: "画像はチャットのファイルに含まれないためインポートしません",
    chatgpt_audio: "音声の録音はインポートしません（文字起こしはインポートします）",
    chatgpt_files: "添付ファイルはインポートしません：{kinds}",
    chatgpt_citations: "リンクのない出典の記号を省きました",
    chatgpt_canvas_edits: "適用できないキャンバスの編集：{kinds}",
    chatgpt_unknown: "Parlorが知らない種類のメッセージ：{kinds}",
    changed_here: "すでに Parlor にあり、前回のインポート後に変更されているため、そのままにしました",
    image_unreadable: "画像を読み込めません",
    avatar_unreadable: "画像を読み込めないため、画像なしでインポートしました",
    avatar_not_in_file: "画像がファイルにないため、画像なしでインポートします",
    avatar_missing: "画像がないため、画像なしでインポートします",
    enter_key: "キーはエクスポートに含まれません。もう一度入力してください",
    server_not_chosen: "「{server}」はまだ使用されません。信頼できる場合は接続を選択してください",
    recordings_left_off: "録音の保存はオフのままです。必要な場合は設定でオンにしてください",
    proposals_left_off: "メモリーの提案はオフのままです。必要な場合はメモリーでオンにしてください",
    speech_left_off: "音声サーバー「{server}」は追加されません。信頼できる場合は「音声」で追加してください",
    transcription_left_off:
      "文字起こしサーバー「{server}」は追加されません。信頼できる場合は「音声」で追加してください",
    web_tools_left_off:
      "ウェブ検索とページの読み取り（「{server}」）はオフのままです。検索サーバーを信頼できる場合は「ツール」でオンにしてください",
    notifications_left_off:
      "「{server}」による通知はオフのままです。信頼できる場合は「アクセス」でアドレスを保存してください",
    source_not_kept: "ディスクがいっぱいのため、もう一度読み取るためのファイルは保存されませんでした",
    reply_not_finished: "チャットのエクスポート時に返信が完了していなかったため、中断としてインポートしました",
    tool_server_left_off: "オフのままです。「{server}」を信頼できる場合は「ツール」でオンにしてください",
    keys_left_out: "サービスのキーと設定は引き継ぎません。「接続」で接続を入力してください",
    service_keys_left_out: "サービスのキーは引き継ぎません。「接続」で入力してください",
    character_missing: "キャラクター「{card}」がないため、チャットはキャラクターなしでインポートします",
    group_missing: "このチャットを持つグループがないため、キャラクターなしでインポートします",
    members_missing: "グループのキャラクターがありません: {cards}",
    empty_entries: "キーも本文もないエントリはインポートしません: {entries}",
    persona_image_unused: "この画像を使うペルソナがありません",
    backgrounds: "背景はインポートしません。チャットのオプションか設定で選んでください",
    thumbnails: "サムネイルは作り直されます",
    backups: "バックアップは、インポートするデータのコピーです",
    themes: "テーマは SillyTavern でのみ使えます",
    presets_of_service: "Parlor が対応していないサービス用のプリセットです",
    presets_of_interface: "Parlor が対応していないインターフェース用のプリセットです",
    instruct: "Instruct テンプレートはインポートしません。サーバーがモデルのテンプレートを使います",
    context: "コンテキストテンプレートはインポートしません。サーバーがモデルのテンプレートを使います",
    tavern_book_linked: "カードに埋め込まれたロアブックはインポートしません。リンクされた「{book}」を使います",
    tavern_note_off: "作者注はSillyTavernでオフのためインポートしません",
    tavern_parent_missing: "独立したチャットとしてインポートしました: 分岐元の「{chat}」がありません",
    tavern_own_settings: "Parlorに対応する場所がない、自分で書いた設定やデータ: {names}",
    tavern_settings: "SillyTavernのその他の設定: {names}",
    quick_reply_scripts: "ボタンのないスクリプトのクイック返信はインポートしません: {names}",
    quick_reply_scripts_shown: "スクリプトのクイック返信のボタンは表示だけで、何もしません: {names}",
    quick_reply_menus: "クイック返信のメニューはインポートしません: {names}",
    quick_reply_automatic: "クイック返信はボタンでのみ送信し、自動では送信しません: {names}",
    unused_part: "{part}（{names}）",
    quick_replies_beyond: "定型文には長すぎる、または多すぎるクイック返信: {names}",
    sillytavern_own: "SillyTavern でのみ使われます",
    agnai_not: "Agnai のファイルではありません",
    agnai_scenarios: "チャットの途中で変わるシナリオには対応していません",
    agnai_templates: "プロンプトの定型文は Agnai 独自の書式のためインポートしません",
    agnai_presets: "プリセットのプロンプトは Agnai 独自の書式のためインポートしません",
    agnai_trees: "チャットの分岐はメッセージから作り直されます",
    chat_without_character: "キャラクターがファイルにないため、チャットはキャラクターなしでインポートします",
    agnai_overrides: "キャラクターの代わりに指定された内容はインポートしません: {fields}",
    backyard_images: "ほかの画像はインポートされません。キャラクターの画像は 1 つです",
    backyard_sampling: "シナリオのサンプリング設定はインポートされません。プリセットを選択してください",
    backyard_scenario: "チャットのないシナリオ「{title}」からは、最初のメッセージだけがインポートされました",
    risu_not: "RisuAI のファイルではありません",
    risu_neither: "カードでもペルソナでもありません",
    risu_persona: "ペルソナを読み込めません",
    risu_no_entries: "ロアブックに項目がありません",
    risu_text_chat: "テキストや HTML で書き出したチャットには、時刻もロールもありません。JSON で書き出してください",
    risu_note: "メモはインポートしません。Parlor のペルソナにメモはありません",
    risu_module: "モジュールはロアブックだけをインポートします。スクリプトと画像は RisuAI でのみ動作します",
    risu_module_rest: "モジュールのスクリプトと画像は RisuAI でのみ動作するため、インポートしません",
    risu_scripts: "スクリプトは RisuAI でのみ動作するため、インポートしません",
    risu_chats_without_character:
      "キャラクターがファイルにないため、チャットはキャラクターとあいさつなしでインポートします",
    risu_presets: "プリセットのプロンプトは RisuAI 独自の書式のためインポートしません",
    risu_character_missing: "このキャラクターのファイルがありません",
    risu_trash: "RisuAI のごみ箱にあります",
    empty_chats: "メッセージのないチャットです",
    risu_chat_images: "メッセージの画像 {count} 枚は RisuAI のどのファイルにもないためインポートしません",
    risu_cold:
      "メッセージは RisuAI のコールドストレージにあり、このファイルには含まれません。RisuAI でチャットを一度開いてから、もう一度書き出してください",
    risu_memory: "RisuAI の記憶はインポートしません。要約は必要になったときに Parlor が作成します",
    risu_variables: "スクリプトの変数はインポートしません",
    risu_voice: "音声モデルはインポートしません。Parlor は音声サーバーの音声サンプルを使います",
    risu_card_scripts: "スクリプトは RisuAI 用にカードに残りますが、Parlor では動作しません",
    risu_damaged: "壊れていて展開できません",
    risu_cut_off: "途中で切れています",
    agnai_body: "スプライトは Agnai 用にカードに残りますが、Parlor では表示できません",
    expressions_only: "インポートできるのは、キャラクターの名前のフォルダーにある表情の画像だけです",
    files_in_card: "その他の画像と音声は一緒に保存されます。CHARX として書き出すと含まれます",
    too_many_files: "キャラクターの追加ファイルが多すぎます",
    risu_media: "追加の画像と音声{count}件が見つかりません",
    risu_module_empty: "このモジュールにはロアブックがありません。スクリプトと画像は RisuAI でのみ動作します",
    risu_no_module: "RisuAI のモジュールではないか、新しい形式です",
    risu_holds_no_module: "モジュールが入っていません",
    risu_module_damaged: "破損しています。モジュールを読めません",
    risu_no_preset: "RisuAI のプリセットではないか、新しい形式です",
    risu_holds_no_preset: "プリセットが入っていません",
    risu_preset_damaged: "破損しています。プリセットを開けません",
    risu_foreign: "RisuAI のものではないか、破損しています",
  },
  ledger: {
    unknown_macro: "Parlor にないマクロ：書かれたまま送信されます",
    unreadable_part: "読み取れないカードの部分（そのまま保持します）",
    regex_script: "正規表現スクリプト: チャットで許可すると実行されます",
    card_script: "他のプログラムのスクリプト（保持しますが実行しません）",
    remote_asset: "Webアドレスにある画像と音声（取得しません）",
    program_data: "他のプログラムのデータ（保持しますが効果はありません）",
    unknown_field: "Parlorが知らない項目（保持しますが効果はありません）",
    preset_regex_script: "正規表現スクリプト: チャットで許可すると実行されます",
    preset_marker: "Parlorが知らないチャットの部分を表すプロンプト",
    preset_connection: "SillyTavernの接続設定（Parlorでは接続ごとに設定します）",
    preset_logit_bias:
      "ロジットバイアス：llama.cpp 以外のサーバーではトークン ID のみ有効で、使えないサーバーもあります",
    preset_setting: "Parlorでは効果のない設定（エクスポート用に保持します）",
    empty_entry_left_out: "キーも本文もないためインポートしなかったエントリ",
    empty_entry: "キーも本文もなく効果のないエントリ",
    unreadable_entry: "読み取れないエントリ（そのまま保持します）",
    vectorized: "SillyTavernでは意味でも見つかるエントリ（ここではキーだけで見つけます）",
    automation: "エントリの自動化（実行しません）",
    foreign_book_settings: "他のプログラムでだけ働くロアブックの設定（エクスポート用に保持します）",
  },
  findings: {
    config_ok: { about: "設定は有効です" },
    config_bad: {
      about: "{error}",
      remedy: "設定を修正してください。parlor --help と docs/configuration.md を参照してください",
    },
    named_file_missing: { about: "{key} が示す「{path}」: {error}", remedy: "そこに置くか、{key} を修正してください" },
    auth_off: {
      about: "サインインはオフになっています（require_auth = false）",
      remedy: "require_auth = true にしてください。false は開発用です",
    },
    open_loopback: {
      about: "このマシンのすべてのユーザーとプログラムが、サインインせずに {addresses} で API を使えます",
      remedy: "ブラウザーで {address} を開いてパスキーを追加してください。これらのアドレスがすべて保護されます",
    },
    open_loopback_without_page: {
      about: "このマシンのすべてのユーザーとプログラムが、サインインせずに {addresses} で API を使えます",
      remedy:
        'pairing = "code" を設定してください。この構成ではこれらのアドレスでページが開かないため、パスキーを追加できません',
    },
    open_names: {
      about: "{names}: 最初のパスキーを追加するまで、サーバーに接続できる人は誰でも API を使えます",
      remedy: 'そこでパスキーを追加するか、pairing = "code" にしてください',
    },
    open_patterns: {
      about: "{patterns} はパスキーで保護できません。クライアントは、パスキーのない名前を使って接続できます",
      remedy: 'allowed_hosts に名前を一つずつ書くか、pairing = "code" にしてください',
    },
    open_addresses: {
      about: "{addresses} に接続できる人は、パスキーなしで使えます。IP アドレスではブラウザーがパスキーを作れません",
      remedy: 'HTTPS の名前を使うか、pairing = "code" にしてトークンでサインインしてください',
    },
    open_plain_names: {
      about: "{names} はパスキーで保護できません。暗号化されていない HTTP ではブラウザーがパスキーを作れません",
      remedy: "tls_cert と tls_key を設定するか、HTTPS プロキシを前に置いて trusted_proxies に加えてください",
    },
    proxy_here_without_credentials: {
      about: "このマシンのプロキシが信頼され、このマシンからのリクエストにはサインインが不要です",
      remedy:
        "loopback_auth_bypass = false にしてください。プロキシがヘッダーを付けないと、すべての訪問者がローカルユーザーとして扱われます",
    },
    few_open_files: {
      about: "サーバーが開けるファイルと接続は、あと {count} 個だけです（ulimit -n）",
      remedy: "上限を 1024 以上にしてください。たとえば systemd ユニットの LimitNOFILE= で設定できます",
    },
    machine_without_credentials: {
      about:
        "このマシンのすべてのユーザーとプログラムが、サインインせずに API を使えます（loopback_auth_bypass = true）",
      remedy: "ほかの人もこのマシンを使うなら loopback_auth_bypass = false にしてください",
    },
    no_name_allowed: {
      about: "サーバーは {host} で待ち受けていますが、ほかのマシン用のホスト名が許可されていません",
      remedy: "ホスト名を allowed_hosts に加えるか、host = 127.0.0.1 にしてください",
    },
    exposed_plain: {
      about: "ほかのマシンから {address} に暗号化なしで接続できる可能性があります",
      remedy:
        "間にプロキシ、コンテナー、ファイアウォールがなければ、host = 127.0.0.1 にするか tls_cert と tls_key を設定してください",
    },
    guard_allow: {
      about: "カードやページの URL から {addresses} に接続できます（guard_allow）",
      remedy: "guard_allow には、カードやダウンロードの取得に必要なものだけを残してください",
    },
    reach_ok: { about: "すべてのアドレスでサインインが必要です" },
    no_data_folder: { about: "データフォルダー「{path}」はまだありません。最初の起動で作られます" },
    data_folder_unreadable: {
      about: "「{path}」を確認できません: {error}",
      remedy: "サーバーを動かしているユーザーとして実行してください",
    },
    open_to_others: {
      about: "ほかのユーザーが「{path}」を読めます（モード {mode}）",
      remedy:
        'chmod {wanted} "{path}" を実行してください。すでに読まれた場合は新しい鍵を作ってください（parlor key rotate）',
    },
    other_owner: {
      about: "「{path}」は別のユーザーのものです",
      remedy: "そのユーザーとして Parlor を動かすか、chown でフォルダーの所有者を変えてください",
    },
    shared_folder: {
      about:
        "「{path}」は別のユーザーのものです（uid {owner}、モード {mode}）。他のユーザーは中のファイルを読めませんが、削除できる可能性があります",
    },
    modes_ok: { about: "「{path}」を読めるのは所有者だけです" },
    interrupted_restore: {
      about: "復元または鍵の交換が途中で止まりました",
      remedy: "次の起動で完了するか破棄されます。サーバーを一度起動してください",
    },
    database_unusable: {
      about: "データベースを使えません: {error}",
      remedy: "バックアップを復元するか（parlor restore FILE --replace）、ファイルを元に戻してください",
    },
    database_lost: {
      about: "このデータフォルダーは使われていましたが、データベース app.db がありません",
      remedy:
        "サーバーが動いていれば止めてください。app.db を元に戻すか、バックアップを復元してください（parlor restore FILE --replace）",
    },
    database_older: {
      about: "{at} に、データベースが前回の実行時より古くなっていました。{count} 件の変更がありません",
      remedy: "古いコピーを置いた覚えがなければ、最新のバックアップを復元してください",
    },
    manifest_remade: {
      about: "{at} に、保存内容の一覧が壊れていたため作り直しました。それ以前に変わったものは検出されません",
      remedy:
        "ディスクを確認してください。壊れていないファイルにするには、バックアップを作成して復元してください（parlor restore ファイル --replace）",
    },
    database_log_missing: {
      about:
        "{at} に、突然の終了のあとデータベースのログ app.db-wal がありませんでした。最後の変更が失われた可能性があります",
      remedy: "app.db-wal はそのままにしてください。サーバーが正しく終了するまで、最後の変更はそこにあります",
    },
    no_database: { about: "データベースはまだありません。最初の起動で作られます" },
    key_unreadable: {
      about: "データベースは確認していません: {error}",
      remedy: "保存用の鍵を直してから、もう一度確認してください",
    },
    key_missing: {
      about: "「{path}」の保存用の鍵がありません",
      remedy: "parlor key import FILE で戻すか、storage_key_file を設定してください",
    },
    key_wrong: {
      about: "保存用の鍵「{path}」はこのデータのものではありません: {error}",
      remedy:
        "データに合う鍵を戻してください（parlor key import FILE または storage_key_file）。データは置き換えないでください",
    },
    schema_newer: {
      about: "データベースのスキーマは {version} ですが、このプログラムが対応しているのは {newest} までです",
      remedy: "新しいバージョンの Parlor を使ってください",
    },
    database_ok: { about: "データベースは正常で、保存用の鍵と一致しています（スキーマ {version}）" },
    credentials_damaged: {
      about: "パスキーのファイル credentials.json が破損しているため、すべてのアドレスを閉じています",
      remedy: "credentials.json をバックアップから復元するか、削除してパスキーをすべて追加し直してください",
    },
    sealed_damaged: {
      about: "暗号化されたファイル {count} 件が破損しているか、ありません: {paths}",
      remedy: "バックアップから取り出してください（parlor restore FILE --data-dir フォルダーで復元し、そこからコピー）",
    },
    database_damaged: {
      about: "データベースが壊れています: {error}",
      remedy: "読めないものを確認し（parlor doctor --deep）、「設定」の「データ」で復元してください",
    },
    stored_unreadable: {
      about: "読めないデータ: {count} 件（{paths}）、{since} から",
      remedy:
        "「設定」の「データ」、または parlor restore --item PATH で復元してください。正常なコピーがないものは、削除するか、エクスポートしてからインポートし直してください",
    },
    stored_unknown: {
      about: "保存されたデータを確認できませんでした: {error}",
      remedy: "サーバーを動かしているユーザーとして実行してください",
    },
    stored_unchecked: {
      about: "保存されたデータ全体はまだ確認されていません。実行中のサーバー、または parlor doctor --deep が確認します",
    },
    stored_ok: { about: "{at} の時点で、保存されたデータはすべて読めました" },
    sealed_unknown: {
      about: "暗号化されたファイルを確認できませんでした: {error}",
      remedy: "サーバーを動かしているユーザーとして実行してください",
    },
    sealed_ok: { about: "暗号化されたファイル {count} 件はすべて開けます" },
    sealed_ok_partly: { about: "暗号化されたファイル {count} 件を開けました。残りは parlor doctor が確認します" },
    backups_off: {
      about: "自動バックアップはオフです",
      remedy: "「設定」>「データ」で別のディスクのフォルダーを選ぶか、backup_dir を設定してください",
    },
    backup_none_yet: { about: "バックアップはまだありません。動作中のサーバーが最初の一つを作成します" },
    backups_gone: {
      about: "バックアップは作成されましたが、「{path}」には一つもありません",
      remedy: "backup_dir のディスクがマウントされているか確認してください",
    },
    backup_dir_not_mounted: {
      about: "「{path}」のディスクがマウントされていないため、バックアップを作成できません",
      remedy: "マウントするか、backup_dir_must_be_mount を外してください",
    },
    backup_dir_unreadable: {
      about: "「{path}」のバックアップを確認できませんでした: {error}",
      remedy: "backup_dir のディスクがマウントされ、このユーザーが読めるか確認してください",
    },
    backup_failed: {
      about: "前回のバックアップは {at} に失敗しました: {error}",
      remedy: "原因を直してから、「設定」>「データ」でバックアップを開始してください",
    },
    backup_old: {
      about: "最新のバックアップ「{name}」は {days} 日前のものです",
      remedy: "サーバーを起動してください。一日に一つ作成します。動いている場合はログを確認してください",
    },
    backup_unusable: {
      about: "最新のバックアップ「{name}」は復元できません: {error}",
      remedy: "「設定」>「データ」で新しく作成し、backup_dir のディスクを確認してください",
    },
    backup_locked: {
      about: "最新のバックアップ「{name}」は開いていません。ここではパスフレーズが不明です",
      remedy: "PARLOR_BACKUP_PASSPHRASE を設定してから、もう一度確認してください",
    },
    backup_ok: { about: "最新のバックアップ「{name}」（Parlor {version}）は復元できます" },
    backup_opens: {
      about: "最新のバックアップ「{name}」（Parlor {version}）は開けます。parlor doctor は全体を読みます",
    },
    clock_ok: { about: "時計は遅れていません" },
    clock_behind: {
      about: "時計は {now} を示していますが、最後に保存した日時より前です",
      remedy: "このマシンの時計を、できれば NTP で合わせてください",
    },
    clock_jumped: {
      about:
        "{before} から {now} の間、サーバーが停止していたか時計が誤っていました。ゴミ箱と以前のバージョンは長めに保管されます",
    },
    disk_unknown: {
      about: "「{path}」の空き容量を確認できません: {error}",
      remedy: "ディスクがマウントされているか確認してください",
    },
    disk_full: {
      about: "「{path}」の空きは {free} GiB です",
      remedy: "空きを作ってください。ディスクがいっぱいだと保存できません",
    },
    disk_little: {
      about: "「{path}」の空きは {free} GiB です",
      remedy: "次のモデルやバックアップの前に空きを作ってください",
    },
    disk_ok: { about: "「{path}」の空きは {free} GiB です" },
    no_program: {
      about: "{key} が示す「{path}」はプログラムではありません",
      remedy: "{key} を修正するか、設定を外して PATH から検索されるようにしてください",
    },
    program_ok: { about: "{program} は「{path}」です" },
    no_yt_dlp: {
      about: "{program} が見つかりません",
      remedy: "サイトから音声サンプルを追加するには、インストールするか {key} を設定してください",
    },
    no_llama_server: {
      about: "{program} が見つかりません",
      remedy: "ダウンロードしたモデルを動かすには、インストールするか {key} を設定してください",
    },
    no_tailscaled: {
      about: "{program} が見つかりません",
      remedy: "tailnet のノードを使うには、インストールするか {key} を設定してください",
    },
    model_left: {
      about: "モデル {model} が Parlor なしで動作しています（プロセス {pid}）",
      remedy: "Parlor を起動すると引き継がれます。Windows 以外では、Parlor の終了から 10 分後に自動的に終了します",
    },
    other_server: {
      about: "「{url}」は Parlor サーバーではありません: ステータス {status}",
      remedy: "プロキシまたは --url を Parlor に向けてください",
    },
    server_ok: { about: "「{url}」でサーバーが応答しています" },
    server_unreachable: {
      about: "「{url}」に接続できません: {error}",
      remedy: "サーバーを起動するか、プロキシ、名前、証明書を修正してください",
    },
    server_off: {
      about: "「{url}」でサーバーが動いていないため、モデル、tailnet ノード、タスクの状態は不明です",
      remedy: "起動してから parlor doctor をもう一度実行してください",
    },
    session_key_unreadable: {
      about: "セッションキーを読めないため、モデル、tailnet ノード、タスクの状態は不明です",
      remedy: "サーバーを実行しているユーザーで、そのデータフォルダーを指定して実行してください",
    },
    certificate_ok: { about: "証明書は {until} まで有効です" },
    certificate_expires: {
      about: "証明書は {until} に期限切れになります",
      remedy: "tls_cert を更新し、サーバーを再起動してください",
    },
    certificate_expired: {
      about: "証明書は {from} から {until} までしか有効ではありません",
      remedy: "tls_cert を更新し、サーバーを再起動してください",
    },
    certificate_not_served: {
      about: "「{url}」のサーバーは、tls_cert のファイルとは別の証明書を使用しています",
      remedy: "証明書を更新した場合は、サーバーを再起動してください",
    },
    clocks_differ: {
      about: "このマシンとサーバーの時計が {seconds} 秒ずれています",
      remedy: "両方を NTP で合わせてください",
    },
    host_refused: {
      about: "サーバーは「{url}」からの接続を受け付けません",
      remedy: "そのホスト名を allowed_hosts に加えてください",
    },
    proxy_untrusted: {
      about: "信頼されていないプロキシがサーバーの前にあります",
      remedy: "そのアドレスを trusted_proxies に加えてください",
    },
    no_passkeys: {
      about: "「{url}」ではどのブラウザーもパスキーを作れません",
      remedy: "HTTPS の名前で接続してください",
    },
    health_untold: { about: "モデルの状態をサーバーから取得できませんでした: ステータス {status}" },
    tailnet_untold: { about: "tailnet ノードの状態をサーバーから取得できませんでした: ステータス {status}" },
    tailnet_ok: { about: "tailnet ノードは {url} で動いています" },
    tailnet_down: {
      about: "tailnet ノードはオンですが動いていません（状態 {state}）: {error}",
      remedy: "「設定」>「アクセス」を確認してください",
    },
    sign_ins_refused: { about: "過去 24 時間に拒否されたサインイン: {count} 件。アドレスはログにあります" },
    sign_ins_refused_often: {
      about: "過去 24 時間に拒否されたサインイン: {count} 件。誰かが認証情報を試している可能性があります",
      remedy: "ログでアドレスを確認し、fail2ban などで遮断してください",
    },
    calls_untold: { about: "接続の状態をサーバーから取得できませんでした: ステータス {status}" },
    call_failed: {
      about: "接続「{name}」（{id}）の最後の呼び出しは失敗しました: {error}",
      remedy: "そのサーバーを起動するか、「設定」>「接続」で修正してください",
    },
    tool_servers_untold: { about: "ツールサーバーの状態をサーバーから取得できませんでした: ステータス {status}" },
    tool_server_ok: { about: "ツールサーバー「{name}」は準備完了です。ツール: {count} 個" },
    tool_server_failed: {
      about: "ツールサーバー「{name}」を利用できません: {error}",
      remedy: "「設定」>「ツール」でテストするか、オフにしてください",
    },
    jobs_untold: { about: "タスクの状態をサーバーから取得できませんでした: ステータス {status}" },
    jobs_failed: {
      about: "過去 24 時間に失敗したタスク: {count} 件。最新は「{title}」: {error}",
      remedy: "「実行状況」を確認してください",
    },
    no_connection: {
      about: "使用中のモデル接続がありません",
      remedy: "「設定」>「接続」で選んでください",
    },
    model_ok: { about: "「{name}」のモデルは {ms} ms で応答します" },
    model_silent: {
      about: "「{name}」のモデルが応答しません: {error}",
      remedy: "サーバーを起動するか、「設定」>「接続」で接続を修正してください",
    },
  },
};
