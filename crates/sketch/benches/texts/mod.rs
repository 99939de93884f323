//! Generated texts for measurements. They are the same in every run, with words and characters
//! about as frequent as in real texts.

/// Small generator with a fixed seed (xorshift64*), so that every run measures the same texts.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// Returns 0 to n - 1. Small numbers are far more frequent, like common words in texts.
    fn zipf(&mut self, n: u64) -> u64 {
        let uniform = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        ((n as f64).powf(uniform) - 1.0) as u64
    }
}

/// Returns `size` words of random `letters`, about as long as English words.
fn vocabulary(random: &mut Random, letters: &[char], size: u64) -> Vec<String> {
    (0..size)
        .map(|rank| {
            let length =
                1 + random.below(4) + random.below(4) + u64::from(rank > 50) * random.below(5);
            (0..length)
                .map(|_| letters[random.below(letters.len() as u64) as usize])
                .collect()
        })
        .collect()
}

/// Letters for [`spaced`]: those of English, each about as often as in real texts.
pub const LATIN: &str = "eeeeeetttttaaaaooooiiiinnnnsssshhhrrrdddlllcuumwfgypbvk";

/// Returns at least `bytes` bytes of sentences in an alphabetic script, with capitals, commas and
/// full stops. The words consist of `letters`; a letter that occurs twice there is twice as
/// frequent.
pub fn spaced(letters: &str, bytes: usize) -> String {
    let mut random = Random(20_021);
    let letters: Vec<char> = letters.chars().collect();
    let words = vocabulary(&mut random, &letters, 30_000);
    let mut text = String::with_capacity(bytes + 100);
    while text.len() < bytes {
        for at in 0..6 + random.below(14) {
            if at > 0 {
                text += if random.below(12) == 0 { ", " } else { " " };
            }
            let word = &words[random.zipf(words.len() as u64) as usize];
            if at == 0 {
                text += &word.to_uppercase()
            } else {
                text += word
            }
        }
        text += if random.below(8) == 0 { ".\n" } else { ". " };
    }
    text
}

/// Returns at least `bytes` bytes of text like Chinese: Han characters without spaces, full-width
/// punctuation, and some numbers and Latin words.
pub fn chinese(bytes: usize) -> String {
    let mut random = Random(2007);
    let mut text = String::with_capacity(bytes + 100);
    while text.len() < bytes {
        for _ in 0..5 + random.below(12) {
            let rank = random.zipf(5000) as u32;
            text.push(char::from_u32(0x4E00 + rank * 4).unwrap());
        }
        match random.below(20) {
            0 => text += "SQL 2007",
            1 => text += "100",
            2..8 => text += "。",
            _ => text += "，",
        }
    }
    text
}

/// Chinese words, the most common first.
const CHINESE_WORDS: &str = "的 是 在 了 我们 他们 一个 中国 和 有 这 不 也 说 就 人 可以 工作 问题 发展 没有 社会 政府 公司 市场 \
    经济 时间 现在 国家 学生 学校 大学 老师 孩子 生活 城市 北京 上海 企业 管理 技术 系统 数据 网络 信息 服务 研究 教育 \
    文化 历史 科学 环境 健康 医院 医生 交通 汽车 铁路 机场 旅游 酒店 餐厅 音乐 电影 电视 新闻 记者 报道 昨天 今天 明天 \
    上午 下午 晚上 图书馆 阅览室 读者 开放 宣布 表示 认为 希望 支持 增加 减少 提高 降低 建设 改革 投资 银行 价格 消费者 \
    产品 质量 安全 能源 电力 天气 下雨 温度 农村 农民 粮食 水果 蔬菜 运动员 比赛 冠军 足球 篮球 奥运会 人工智能 互联网 \
    计算机 软件 工程师 设计师 科学家 委员会 办公室 负责人 有关部门 中华人民共和国 国务院 全国人民代表大会 法律 规定 合同 \
    权利 义务 责任 组织 活动 计划 项目 方案 目标 结果 影响 原因 情况 过程 方法 条件 机会 经验 能力 水平 标准 制度 政策 \
    国际 世界 美国 日本 欧洲 亚洲 合作 竞争 和平 战争 军队 警察 法院 犯罪 调查 证据 家庭 父母 妻子 朋友 邻居 房子 街道 \
    小区 物业 停车场 公交车 地铁 站台 李明 王小红 张建国 陈志强";

/// Returns at least `bytes` bytes of Chinese words without spaces, with full-width punctuation, and
/// some numbers and Latin words.
pub fn chinese_words(bytes: usize) -> String {
    let mut random = Random(1995);
    let words: Vec<&str> = CHINESE_WORDS.split_whitespace().collect();
    let mut text = String::with_capacity(bytes + 100);
    while text.len() < bytes {
        for _ in 0..4 + random.below(9) {
            text += words[random.zipf(words.len() as u64) as usize];
        }
        match random.below(20) {
            0 => text += "SQL 2007",
            1 => text += "100",
            2..8 => text += "。",
            _ => text += "，",
        }
    }
    text
}

/// Cuts a text into documents of about `bytes` bytes each. The last one may be shorter.
pub fn documents(text: &str, bytes: usize) -> Vec<&str> {
    let mut documents = Vec::new();
    let mut rest = text;
    while rest.len() > bytes {
        let (document, after) = rest.split_at(rest.ceil_char_boundary(bytes));
        documents.push(document);
        rest = after;
    }
    documents.push(rest);
    documents
}
